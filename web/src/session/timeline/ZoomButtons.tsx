import { ActionIcon, Group, Tooltip } from "@mantine/core";
import { IconArrowsHorizontal, IconZoomIn, IconZoomOut } from "@tabler/icons-react";

interface ZoomButtonsProps {
  onZoom: (factor: number) => void;
  onFit: () => void;
  atFit: boolean;
}

export function ZoomButtons({ onZoom, onFit, atFit }: ZoomButtonsProps) {
  return (
    <Group gap={4} wrap="nowrap">
      <Tooltip label="Zoom in ( + , Ctrl and wheel )">
        <ActionIcon variant="default" size="sm" aria-label="Zoom in" onClick={() => onZoom(0.5)}>
          <IconZoomIn size={15} stroke={1.6} />
        </ActionIcon>
      </Tooltip>
      <Tooltip label="Zoom out ( - )">
        <ActionIcon variant="default" size="sm" aria-label="Zoom out" disabled={atFit} onClick={() => onZoom(2)}>
          <IconZoomOut size={15} stroke={1.6} />
        </ActionIcon>
      </Tooltip>
      <Tooltip label="Show the whole call ( 0 )">
        <ActionIcon variant="default" size="sm" aria-label="Show the whole call" disabled={atFit} onClick={onFit}>
          <IconArrowsHorizontal size={15} stroke={1.6} />
        </ActionIcon>
      </Tooltip>
    </Group>
  );
}
