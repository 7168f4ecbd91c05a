import { createBrowserRouter, Navigate, type RouteObject } from "react-router";
import { NotFoundPage } from "./NotFoundPage";
import { RouteError } from "./RouteError";
import { PageSkeleton } from "./PageSkeleton";
import { Shell } from "./Shell";
import { SessionsPage } from "../sessions/SessionsPage";

/** The sessions list is the front page and part of the first load; the other pages come when they are opened. */
const pages: RouteObject[] = [
  { index: true, element: <Navigate to="/sessions" replace /> },
  { path: "sessions", element: <SessionsPage /> },
  {
    path: "sessions/:id",
    lazy: async () => ({ Component: (await import("../session/SessionPage")).SessionPage }),
  },
  { path: "evals", lazy: async () => ({ Component: (await import("../evals/RunsPage")).RunsPage }) },
  { path: "evals/compare", lazy: async () => ({ Component: (await import("../evals/ComparePage")).ComparePage }) },
  { path: "evals/:runId", lazy: async () => ({ Component: (await import("../evals/RunPage")).RunPage }) },
  { path: "evals/:runId/cases/:caseId", lazy: async () => ({ Component: (await import("../evals/CasePage")).CasePage }) },
  { path: "alerts", lazy: async () => ({ Component: (await import("../alerts/AlertsPage")).AlertsPage }) },
  { path: "alerts/new", lazy: async () => ({ Component: (await import("../alerts/RuleFormPage")).RuleFormPage }) },
  { path: "alerts/:ruleId", lazy: async () => ({ Component: (await import("../alerts/RulePage")).RulePage }) },
  { path: "alerts/:ruleId/edit", lazy: async () => ({ Component: (await import("../alerts/RuleFormPage")).RuleFormPage }) },
  { path: "*", element: <NotFoundPage /> },
];

export const router = createBrowserRouter([
  {
    element: <Shell />,
    hydrateFallbackElement: <PageSkeleton />,
    // An error of a page is shown inside the shell, so that the way out stays.
    children: [{ errorElement: <RouteError />, children: pages }],
  },
]);
