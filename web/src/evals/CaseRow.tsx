import { Link } from "react-router";
import type { EvalCase } from "../api/types";
import { formatLatency } from "../format/units";
import { brief, text } from "../session/model/loose";
import { StatusBadge } from "../ui/StatusBadge";
import { judgmentName, judgmentVerdict } from "./judgments";
import classes from "./Evals.module.css";

export function CaseRow({ runId, evalCase }: { runId: string; evalCase: EvalCase }) {
  const message = text(evalCase.failure?.message);
  return (
    <article className={classes.case}>
      <div>
        <Link to={`/evals/${runId}/cases/${evalCase.case_id}`} className={classes.caseName}>
          {evalCase.name}
        </Link>{" "}
        {evalCase.file && <span className={`mono ${classes.caseFile}`}>{evalCase.file}</span>}
      </div>
      <span className={classes.caseNumbers}>{formatLatency(evalCase.duration_ms)}</span>
      {message && <p className={classes.failure}>{brief(message.split("\n")[0] ?? message, 240)}</p>}
      {evalCase.judgments.length > 0 && (
        <ul className={classes.verdicts}>
          {evalCase.judgments.map((judgment, index) => (
            <li key={index}>
              <StatusBadge word={judgmentVerdict(judgment)} />
              {judgmentName(judgment)}
            </li>
          ))}
        </ul>
      )}
    </article>
  );
}
