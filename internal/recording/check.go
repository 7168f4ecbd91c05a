package recording

import (
	"context"
	"fmt"
	"time"

	"sidetone/internal/errs"
)

const (
	// orphanAge is how old a file or an object without a row must be to be nobody's: a report that is coming in has none
	// yet. It is far longer than any report takes.
	orphanAge = 6 * time.Hour
	// unfinishedAge is how old an upload in parts must be for nobody to be working on it.
	unfinishedAge = 24 * time.Hour
)

// Finding is one thing that the database, the folder and the object store do not agree about.
type Finding struct {
	Key     string
	Session string // "" when no session refers to it
	Problem string
	Fixed   bool
	Lost    bool // the recording of a session is nowhere, and nothing here can bring it back
	Err     error
}

func (f Finding) String() string {
	s := f.Key + ": " + f.Problem
	if f.Session != "" {
		s += " (session " + f.Session + ")"
	}
	switch {
	case f.Err != nil:
		s += ": " + f.Err.Error()
	case f.Fixed:
		s += ": fixed"
	case f.Lost:
		s += ": cannot be repaired"
	}
	return s
}

// CheckResult is what a check saw.
type CheckResult struct {
	Recordings, Waiting, Elsewhere int // of sessions; of those in the spool; of those in the folders of other servers
	Findings                       int
	Unfixed                        int // findings that are still there
}

// shards are the first two hex digits of keys: what a check holds in memory at a time.
const shards = 256

// Shards is how many steps a check tells of.
const Shards = shards + 1

// Check compares the rows with the folder and, when there is one, with the object store, tells of each finding, and
// with fix repairs it: it removes what no session needs and what is there twice, and corrects where a row says its
// bytes are when they are somewhere else. The recording of a session is never deleted unless the same bytes are
// where its row says. Files and objects younger than six hours may belong to reports that are coming in. step is
// called after each part of the work.
func (k *Keeper) Check(ctx context.Context, now time.Time, fix bool, found func(Finding), step func()) (CheckResult, error) {
	c := &check{k: k, now: now, fix: fix, found: found}
	for i := range shards {
		if err := c.shard(ctx, fmt.Sprintf("%02x", i)); err != nil {
			return c.result, err
		}
		step()
	}
	err := c.unfinished(ctx)
	step()
	return c.result, err
}

type check struct {
	k      *Keeper
	now    time.Time
	fix    bool
	found  func(Finding)
	result CheckResult
}

// tell reports a finding and repairs it when it may.
func (c *check) tell(row Row, problem string, repair func() error) {
	f := Finding{Key: row.Key, Session: row.SessionID, Problem: problem, Lost: repair == nil}
	if repair != nil && c.fix {
		f.Err = repair()
		f.Fixed = f.Err == nil
	}
	c.result.Findings++
	if !f.Fixed {
		c.result.Unfixed++
	}
	c.found(f)
}

func byKey(list []Object) map[string]Object {
	m := make(map[string]Object, len(list))
	for _, o := range list {
		m[o.Key] = o
	}
	return m
}

func (c *check) shard(ctx context.Context, shard string) error {
	// The bytes are listed before the rows: what is taken in meanwhile then has a row and is not listed, and what is
	// moved meanwhile is looked at again before it counts.
	inFolder, err := c.k.folder.List(shard)
	if err != nil {
		return err
	}
	var inStore []Object
	if c.k.objects != nil {
		if inStore, err = c.k.objects.List(ctx, shard); err != nil {
			return err
		}
	}
	rows, err := c.k.store.Shard(ctx, shard)
	if err != nil {
		return err
	}
	files, objects := byKey(inFolder), byKey(inStore)
	for _, row := range rows {
		if row.Dropped { // on its way out, from wherever it is
			delete(files, row.Key)
			delete(objects, row.Key)
			continue
		}
		file, hasFile := files[row.Key]
		object, hasObject := objects[row.Key]
		delete(files, row.Key)
		delete(objects, row.Key)
		c.result.Recordings++
		if row.Place == InSpool {
			c.result.Waiting++
		}
		c.row(ctx, row, hasFile && file.Size == row.Size, hasObject && object.Size == row.Size, hasFile, hasObject)
	}
	for key, f := range files {
		if c.now.Sub(f.Modified) >= orphanAge {
			c.orphan(ctx, key, "a file that no session refers to", func() error { return c.k.folder.Remove(key) })
		}
	}
	for key, o := range objects {
		if c.now.Sub(o.Modified) >= orphanAge {
			c.orphan(ctx, key, "an object that no session refers to", func() error { return c.k.objects.Delete(ctx, key) })
		}
	}
	return nil
}

// orphan tells of bytes without a row, unless one came meanwhile.
func (c *check) orphan(ctx context.Context, key, problem string, repair func() error) {
	if _, err := c.k.store.Recording(ctx, key); errs.Is(err, errs.NotFound) {
		c.tell(Row{Key: key}, problem, repair)
	}
}

// row compares one row with what was found. file and object say whether whole ones are there, anyFile and anyObject
// whether there are some at all.
func (c *check) row(ctx context.Context, row Row, file, object, anyFile, anyObject bool) {
	mine := c.k.folder.ID()
	here := row.Folder == mine || row.Folder == ""
	set := func(place Place, folder string, next time.Time) func() error {
		return func() error {
			_, err := c.k.store.Switch(ctx, row, place, folder, next)
			return err
		}
	}
	// The size alone does not tell a damaged file from a good one.
	respool := func() error {
		f, err := c.k.folder.Open(row.Key)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := verify(f, row); err != nil {
			return err
		}
		return set(InSpool, mine, due)()
	}
	switch {
	case !c.same(ctx, row): // it moved while the lists were read
	case row.Place == InObjects && c.k.objects == nil:
		c.tell(row, "is in object storage, which is not configured here", nil)
	case row.Place == InObjects && object:
		if anyFile && row.NextAt.IsZero() {
			c.tell(row, "is in object storage, and a copy is left in the folder", c.alone(ctx, row, func() error { return c.k.folder.Remove(row.Key) }))
		}
	case row.Place == InObjects && file:
		c.tell(row, "is not whole in object storage, but in the folder", respool)
	case row.Place == InObjects && anyObject:
		c.tell(row, "the object has not the size that was received", nil)
	case row.Place == InObjects:
		c.tell(row, "the object is missing", nil)
	case !here && file:
		c.tell(row, "is noted for another folder, but is in this one", func() error {
			next := time.Time{}
			if row.Place == InSpool {
				next = due
			}
			return set(row.Place, mine, next)()
		})
	case !here:
		c.result.Elsewhere++
	case file:
		if anyObject && row.Place == InFolder && row.NextAt.IsZero() {
			c.tell(row, "is in the folder, and a copy is left in object storage", c.alone(ctx, row, func() error { return c.k.objects.Delete(ctx, row.Key) }))
		}
	case object:
		c.tell(row, "is not whole in the folder, but in object storage", set(InObjects, row.Folder, due))
	case anyFile:
		c.tell(row, "the file has not the size that was received", nil)
	default:
		c.tell(row, "the file is missing", nil)
	}
}

// alone runs a repair that removes one of two copies while nobody else, such as a move, can be working on the recording.
func (c *check) alone(ctx context.Context, row Row, repair func() error) func() error {
	return func() error {
		f, err := c.k.folder.Lock(row.Key)
		if err != nil {
			return err
		}
		if f != nil {
			defer f.Close()
		}
		if f == nil || !c.same(ctx, row) {
			return errs.New(errs.Unavailable, "another process is working on it; check again")
		}
		return repair()
	}
}

// same reports whether a row is still as it was read.
func (c *check) same(ctx context.Context, row Row) bool {
	is, err := c.k.store.Recording(ctx, row.Key)
	return err == nil && is.Place == row.Place && is.Folder == row.Folder && !is.Dropped && is.NextAt.Equal(row.NextAt)
}

// unfinished finds uploads in parts that died with their process; the store charges for their parts.
func (c *check) unfinished(ctx context.Context) error {
	if c.k.objects == nil {
		return nil
	}
	list, err := c.k.objects.Unfinished(ctx)
	if err != nil {
		return err
	}
	for _, u := range list {
		if c.now.Sub(u.Modified) >= unfinishedAge {
			c.tell(Row{Key: u.Key}, "an upload that was never finished", func() error { return c.k.objects.Discard(ctx, u.Key) })
		}
	}
	return nil
}
