import { Anchor, Text, Title } from "@mantine/core";
import { Link } from "react-router";

export function NotFoundPage() {
  return (
    <>
      <Title order={1} size="h3">
        There is no page here
      </Title>
      <Text mt="xs">
        The address is wrong or the page is gone. <Anchor component={Link} to="/sessions">Go to the sessions</Anchor>.
      </Text>
    </>
  );
}
