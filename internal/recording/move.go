package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"sidetone/internal/errs"
)

// MoveResult is what a move did.
type MoveResult struct {
	Moved     Total
	Failed    int
	Elsewhere int // in the folders of other servers: to be moved there
}

// Move copies recordings to another place one by one, verifies each copy, switches its row and removes the original.
// Interrupted, it goes on where it was when it is called again. step is called for every recording of a session that
// is looked at; failed, for each that stays where it was.
func (k *Keeper) Move(ctx context.Context, to Place, step func(bytes int64), failed func(key string, err error)) (MoveResult, error) {
	var result MoveResult
	if k.objects == nil {
		return result, errs.New(errs.Invalid, "object storage is not configured: set S3_BUCKET")
	}
	for i := range shards {
		rows, err := k.store.Shard(ctx, fmt.Sprintf("%02x", i))
		if err != nil {
			return result, err
		}
		for _, row := range rows {
			if ctx.Err() != nil {
				return result, ctx.Err()
			}
			if row.Dropped {
				continue
			}
			moved, err := k.move(ctx, row, to, &result)
			switch {
			case ctx.Err() != nil:
				return result, ctx.Err()
			case err != nil:
				result.Failed++
				failed(row.Key, err)
			case moved:
				result.Moved.Count++
				result.Moved.Bytes += row.Size
			}
			step(row.Size)
		}
	}
	return result, nil
}

// move moves one recording; false when there was nothing to do or somebody else is doing it.
func (k *Keeper) move(ctx context.Context, row Row, to Place, result *MoveResult) (bool, error) {
	if row.Place == InObjects {
		if to == InObjects {
			return false, nil
		}
		return true, k.fetch(ctx, row)
	}
	if row.Folder != k.folder.ID() && row.Folder != "" {
		result.Elsewhere++
		return false, nil
	}
	if row.Place == to {
		return false, nil
	}
	file, err := k.folder.Lock(row.Key)
	if err != nil && !errs.Is(err, errs.NotFound) {
		return false, err
	}
	if file == nil && err == nil {
		return false, nil // a server uploads it right now
	}
	if file != nil {
		defer file.Close()
	}
	is, err := k.store.Recording(ctx, row.Key)
	if err != nil || is.Place != row.Place || is.Dropped {
		if errs.Is(err, errs.NotFound) {
			err = nil
		}
		return false, err
	}
	if to == InObjects {
		return true, k.upload(ctx, is, file)
	}
	if file == nil {
		return false, errs.New(errs.Internal, "the file is missing in the folder")
	}
	return k.store.Switch(ctx, is, InFolder, k.folder.ID(), due) // what an upload may have left is deleted in the next round
}

// fetch brings a recording from the object store to the folder.
func (k *Keeper) fetch(ctx context.Context, row Row) error {
	busy := errs.New(errs.Unavailable, "another process is working on it; try again")
	if row.Folder != "" {
		return busy // the copy it was uploaded from is about to be removed
	}
	// A stale file under this name may be just what a check is about to remove.
	switch stale, err := k.folder.Lock(row.Key); {
	case errs.Is(err, errs.NotFound):
	case err != nil:
		return err
	case stale == nil:
		return busy
	default:
		defer stale.Close()
	}
	from, err := k.objects.Open(ctx, row.Key, row.Size)
	if err != nil {
		return err
	}
	defer from.Close()
	s, err := k.folder.Create(ctx)
	if err != nil {
		return err
	}
	defer s.Abort()
	s.SetKey(row.Key)
	if _, err := io.CopyBuffer(struct{ io.Writer }{s}, struct{ io.Reader }{from}, make([]byte, 256<<10)); err != nil {
		return err
	}
	lock, err := s.Lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	got, err := s.Commit(ctx)
	if err != nil {
		return err
	}
	if got.SHA256 != row.SHA256 || got.Size != row.Size {
		return errors.Join(errs.New(errs.Internal, "the object is damaged: it is not what was received"), k.folder.Remove(row.Key))
	}
	ok, err := k.store.Switch(ctx, row, InFolder, k.folder.ID(), due)
	if err != nil {
		return err // the object is still what counts; the file is found by the next try or by a check
	}
	if !ok {
		return k.folder.Remove(row.Key) // deleted meanwhile
	}
	if err := k.objects.Delete(ctx, row.Key); err != nil {
		return nil // the row says that it is to be deleted: a round will do it
	}
	row.Place, row.Folder = InFolder, k.folder.ID()
	_, err = k.store.Switch(ctx, row, InFolder, row.Folder, time.Time{})
	return err
}
