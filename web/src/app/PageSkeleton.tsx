import { Skeleton } from "@mantine/core";
import classes from "./Shell.module.css";

/** Stands for the whole window while the code of the first page loads. */
export function PageSkeleton() {
  return (
    <>
      <div className={classes.header} />
      <div className={classes.main} role="status" aria-label="Loading">
        <Skeleton height={28} width={240} mb="md" />
        <Skeleton height={360} />
      </div>
    </>
  );
}
