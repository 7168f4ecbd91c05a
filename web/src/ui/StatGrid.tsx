import classes from "./StatGrid.module.css";

export interface Stat {
  label: string;
  value: string;
  note?: string;
}

/** Named numbers in a grid. */
export function StatGrid({ stats }: { stats: Stat[] }) {
  return (
    <dl className={classes.grid}>
      {stats.map((stat) => (
        <div key={stat.label} className={classes.stat}>
          <dt>{stat.label}</dt>
          <dd className={classes.value}>{stat.value}</dd>
          {stat.note && <dd className={classes.note}>{stat.note}</dd>}
        </div>
      ))}
    </dl>
  );
}
