import { CloseButton, Code } from "@mantine/core";
import { useSessionStorage } from "@mantine/hooks";
import { useServerStatus } from "../api/queries";
import classes from "./AuthBanner.module.css";

/** Says who can read the data when the dashboard has no password, and how to change that. */
export function AuthBanner() {
  const { data } = useServerStatus();
  const [hidden, setHidden] = useSessionStorage({ key: "sidetone-auth-banner-hidden", defaultValue: false });
  if (!data || data.auth.basic || hidden) return null;
  return (
    <aside className={classes.banner} aria-label="Access">
      <span>
        {data.auth.livekit
          ? "Only agents need a key here: everyone else who reaches this server can read these calls."
          : "Everyone who reaches this server can read these calls and send new ones."}{" "}
        For a password set <Code className={classes.code}>AGENT_OBSERVABILITY_USER</Code> and{" "}
        <Code className={classes.code}>AGENT_OBSERVABILITY_PASS</Code>.
      </span>
      <CloseButton size="sm" aria-label="Hide this notice" onClick={() => setHidden(true)} />
    </aside>
  );
}
