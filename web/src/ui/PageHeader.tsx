import { Title } from "@mantine/core";
import type { ReactNode } from "react";
import classes from "./PageHeader.module.css";

interface PageHeaderProps {
  title: ReactNode;
  /** A short line under or beside the title: counts, a state. */
  note?: ReactNode;
  children?: ReactNode;
}

export function PageHeader({ title, note, children }: PageHeaderProps) {
  return (
    <div className={classes.header}>
      <div className={classes.words}>
        <Title order={1} size="h3" className={classes.title}>
          {title}
        </Title>
        {note && <div className={classes.note}>{note}</div>}
      </div>
      {children && <div className={classes.actions}>{children}</div>}
    </div>
  );
}
