import { useRouteError } from "react-router";
import { ErrorBox } from "../ui/ErrorBox";

/** Shown when a page breaks or its code cannot be loaded (an older tab after an update of the server). */
export function RouteError() {
  const error = useRouteError();
  return (
    <ErrorBox
      title="This page could not be shown"
      error={error}
      onRetry={() => window.location.reload()}
    />
  );
}
