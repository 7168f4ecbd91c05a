import type { LooseRecord } from "../api/types";
import { text } from "../session/model/loose";

/** Where a run was made: what to call it and, if it is a web address, where to look. */
export function describeCI(ci: LooseRecord | null): { label: string; url: string | null } | null {
  if (!ci) return null;
  const branch = text(ci.git_branch) ?? text(ci.branch);
  const commit = (text(ci.git_sha) ?? text(ci.commit))?.slice(0, 7);
  const label = [branch, commit].filter(Boolean).join(" @ ") || text(ci.provider) || "CI";
  const url = text(ci.run_url) ?? text(ci.url);
  return { label, url: url !== null && /^https?:\/\//i.test(url) ? url : null };
}
