import { ActionIcon, Menu, useMantineColorScheme, type MantineColorScheme } from "@mantine/core";
import { IconDeviceDesktop, IconMoon, IconSun } from "@tabler/icons-react";

const schemes: { value: MantineColorScheme; label: string; icon: typeof IconSun }[] = [
  { value: "auto", label: "Like the system", icon: IconDeviceDesktop },
  { value: "light", label: "Light", icon: IconSun },
  { value: "dark", label: "Dark", icon: IconMoon },
];

export function ColorSchemeButton() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const current = schemes.find((scheme) => scheme.value === colorScheme) ?? schemes[0]!;
  return (
    <Menu position="bottom-end" width={180}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={`Colours: ${current.label}`}>
          <current.icon size={18} stroke={1.6} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {schemes.map((scheme) => (
          <Menu.Item
            key={scheme.value}
            leftSection={<scheme.icon size={16} stroke={1.6} />}
            aria-current={scheme.value === colorScheme}
            fw={scheme.value === colorScheme ? 600 : 400}
            onClick={() => setColorScheme(scheme.value)}
          >
            {scheme.label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
