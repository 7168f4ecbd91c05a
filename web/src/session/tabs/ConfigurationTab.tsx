import { Table, Text } from "@mantine/core";
import type { SessionDetail } from "../../api/types";
import { MISSING } from "../../format/units";
import { JsonView } from "../../ui/JsonView";
import classes from "./Tabs.module.css";

/** How the session was set up: identity, tags, options and what each provider was used for. */
export function ConfigurationTab({ session }: { session: SessionDetail }) {
  const identity: [string, string | null][] = [
    ["Session", session.id],
    ["Room", session.room_name],
    ["Job", session.job_id],
    ["Agent", [session.agent_name, session.agent_id].filter(Boolean).join(" · ") || null],
    ["Account", session.account_id],
    ["Transport", session.transport],
    ["SDK version", session.sdk_version],
  ];
  return (
    <div className={classes.columns}>
      <div className={classes.stack}>
        <section>
          <h2 className={classes.heading}>Identity</h2>
          <Table>
            <Table.Tbody>
              {identity.map(([name, value]) => (
                <Table.Tr key={name}>
                  <Table.Th w={120} fw={500} c="dimmed">
                    {name}
                  </Table.Th>
                  <Table.Td className={classes.logBody}>{value ?? MISSING}</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </section>
        <section>
          <h2 className={classes.heading}>Tags</h2>
          {session.tags.length === 0 ? (
            <Text size="sm" c="dimmed">
              None
            </Text>
          ) : (
            <Table>
              <Table.Tbody>
                {session.tags.map((tag) => (
                  <Table.Tr key={tag.name}>
                    <Table.Td className="mono">{tag.name}</Table.Td>
                    <Table.Td className={classes.logBody}>{tag.metadata == null ? "" : JSON.stringify(tag.metadata)}</Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          )}
        </section>
        <section>
          <h2 className={classes.heading}>Usage</h2>
          {session.usage && session.usage.length > 0 ? (
            <JsonView value={session.usage} label="usage" maxHeight={400} />
          ) : (
            <Text size="sm" c="dimmed">
              None was reported
            </Text>
          )}
        </section>
      </div>
      <section>
        <h2 className={classes.heading}>Options</h2>
        {session.options ? (
          <JsonView value={session.options} label="options" maxHeight={640} />
        ) : (
          <Text size="sm" c="dimmed">
            None were sent
          </Text>
        )}
      </section>
    </div>
  );
}
