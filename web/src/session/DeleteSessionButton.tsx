import { useDeleteSession } from "../api/queries";
import { DeleteButton } from "../ui/DeleteButton";

export function DeleteSessionButton({ id }: { id: string }) {
  return (
    <DeleteButton question="Delete this session?" remove={useDeleteSession(id)} leadsTo="/sessions" compact>
      <span className="mono" style={{ overflowWrap: "anywhere" }}>
        {id}
      </span>{" "}
      goes with its recording, transcript, spans and logs.
    </DeleteButton>
  );
}
