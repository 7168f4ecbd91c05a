package recording_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sidetone/internal/blob"
	"sidetone/internal/recording"
	"sidetone/internal/s3test"
)

// check runs a check at a time when everything in the test is old, and returns the findings as problems by session or key.
func (h *house) check(fix bool) (recording.CheckResult, map[string]string) {
	h.t.Helper()
	problems := map[string]string{}
	steps := 0
	result, err := h.keeper.Check(h.t.Context(), time.Now().Add(48*time.Hour), fix, func(f recording.Finding) {
		name := f.Session
		if name == "" {
			name = f.Key
		}
		problems[name] = f.String()
	}, func() { steps++ })
	if err != nil {
		h.t.Fatal(err)
	}
	if steps != recording.Shards {
		h.t.Errorf("%d steps of %d", steps, recording.Shards)
	}
	if len(problems) != result.Findings {
		h.t.Errorf("%d findings told, %d counted", len(problems), result.Findings)
	}
	return result, problems
}

func (h *house) path(key string) string { return filepath.Join(h.folder, filepath.FromSlash(key)) }

func (h *house) write(key string, data []byte) {
	h.t.Helper()
	os.MkdirAll(filepath.Dir(h.path(key)), 0o750)
	if err := os.WriteFile(h.path(key), data, 0o640); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) put(key string, data []byte) {
	h.t.Helper()
	if err := h.objects.Put(h.t.Context(), key, bytes.NewReader(data), int64(len(data))); err != nil {
		h.t.Fatal(err)
	}
}

func TestCheckFindsAndFixes(t *testing.T) {
	h := newHouse(t)
	audio := map[string][]byte{}
	send := func(ids ...string) {
		for _, id := range ids {
			audio[id] = noise(len(audio), 5000)
			h.send(id, audio[id])
		}
	}
	h.restart(false)
	send("in folder", "in folder and bucket", "file lost", "file damaged", "file lost but uploaded")
	h.restart(true)
	send("uploaded", "uploaded and in folder", "object lost", "object lost but file there", "object lost and file damaged", "object cut")
	h.keeper.Round(t.Context(), noon)
	send("waits", "waits here under another name")

	h.put(h.key("in folder and bucket"), audio["in folder and bucket"])
	os.Remove(h.path(h.key("file lost")))
	h.write(h.key("file damaged"), []byte("short"))
	os.Remove(h.path(h.key("file lost but uploaded")))
	h.put(h.key("file lost but uploaded"), audio["file lost but uploaded"])
	h.write(h.key("uploaded and in folder"), audio["uploaded and in folder"])
	for _, id := range []string{"object lost", "object lost but file there", "object lost and file damaged"} {
		h.server.Remove("recordings/" + h.key(id))
	}
	h.write(h.key("object lost but file there"), audio["object lost but file there"])
	h.write(h.key("object lost and file damaged"), noise(99, 5000)) // of the right size
	h.put(h.key("object cut"), []byte("short"))
	row := h.row("waits here under another name")
	if ok, err := h.store.Switch(t.Context(), row, recording.InSpool, "a folder elsewhere", row.NextAt); !ok || err != nil {
		t.Fatal(ok, err)
	}
	orphanFile, orphanObject := "aa/"+strings.Repeat("0", 30)+".ogg", "bb/"+strings.Repeat("1", 30)+".ogg"
	h.write(orphanFile, []byte("x"))
	h.put(orphanObject, []byte("y"))
	h.put("not-a-recording", []byte("somebody else's"))
	if _, err := h.objects.Begin(t.Context(), "cc/"+strings.Repeat("2", 30)+".ogg"); err != nil {
		t.Fatal(err)
	}

	want := map[string]string{
		"in folder and bucket":                   "a copy is left in object storage",
		"file lost":                              "the file is missing",
		"file damaged":                           "the file has not the size",
		"file lost but uploaded":                 "not whole in the folder, but in object storage",
		"uploaded and in folder":                 "a copy is left in the folder",
		"object lost":                            "the object is missing",
		"object lost but file there":             "not whole in object storage, but in the folder",
		"object lost and file damaged":           "not whole in object storage, but in the folder",
		"object cut":                             "the object has not the size",
		"waits here under another name":          "noted for another folder",
		orphanFile:                               "a file that no session refers to",
		orphanObject:                             "an object that no session refers to",
		"cc/" + strings.Repeat("2", 30) + ".ogg": "an upload that was never finished",
	}
	before, objectsBefore := len(h.files()), len(h.server.Keys())
	for _, fix := range []bool{false, true} {
		result, got := h.check(fix)
		for name, problem := range want {
			if !strings.Contains(got[name], problem) {
				t.Errorf("fix %v: %s: %q, want %q", fix, name, got[name], problem)
			}
		}
		for name, problem := range got {
			if want[name] == "" {
				t.Errorf("fix %v: %s: %s", fix, name, problem)
			}
		}
		if result.Recordings != len(audio) || result.Waiting != 2 {
			t.Errorf("fix %v: %+v", fix, result)
		}
		if !fix && (result.Unfixed != len(want) || len(h.files()) != before || len(h.server.Keys()) != objectsBefore) {
			t.Errorf("a check without --fix changed something: %+v", result)
		}
		if fix && result.Unfixed != 5 {
			t.Errorf("%d are left, want the two lost, the two damaged and the one cut", result.Unfixed)
		}
	}
	h.restart(true)
	until(t, "all due work done", func() bool { return h.keeper.Round(t.Context(), noon).IsZero() })
	lost := []string{"file lost", "file damaged", "object lost", "object lost and file damaged", "object cut"}
	result, got := h.check(true)
	if result.Findings != len(lost) || result.Unfixed != len(lost) {
		t.Errorf("after fixing: %v", got)
	}
	for id, data := range audio {
		if !slices.Contains(lost, id) {
			h.plays(id, data)
		}
	}
	if !slices.Contains(h.server.Keys(), "recordings/not-a-recording") {
		t.Error("an object of somebody else is gone")
	}
}

// What is coming in has no row yet: nothing young is an orphan.
func TestYoungFilesAreNoOrphans(t *testing.T) {
	h := newHouse(t)
	rec, err := h.keeper.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rec.Write([]byte("x"))
	if _, err := rec.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.put("bb/"+strings.Repeat("1", 30)+".ogg", []byte("y"))
	for after, want := range map[time.Duration]int{0: 0, 5 * time.Hour: 0, 7 * time.Hour: 2} {
		result, err := h.keeper.Check(t.Context(), time.Now().Add(after), false, func(recording.Finding) {}, func() {})
		if err != nil || result.Findings != want {
			t.Errorf("after %s: %+v, %v, want %d findings", after, result, err, want)
		}
	}
}

func TestMoveThereAndBack(t *testing.T) {
	h := newHouse(t)
	h.restart(false)
	const n = 30
	audio := map[string][]byte{}
	for i := range n {
		id := fmt.Sprint("call-", i)
		audio[id] = noise(i, 1000+i)
		h.send(id, audio[id])
	}
	audio["large"] = noise(77, recording.PartSize+500)
	h.send("large", audio["large"])
	h.restart(true)
	if next := h.keeper.Round(t.Context(), noon); !next.IsZero() {
		t.Error("recordings of the folder are uploaded without being told")
	}
	for _, c := range []struct {
		to             recording.Place
		files, objects int
	}{{recording.InObjects, 0, n + 1}, {recording.InFolder, n + 1, 0}, {recording.InObjects, 0, n + 1}} {
		// Interrupted after ten, then while the store is away, then to the end.
		ctx, cancel := context.WithCancel(t.Context())
		steps := 0
		_, err := h.keeper.Move(ctx, c.to, func(int64) {
			if steps++; steps == 10 {
				cancel()
			}
		}, func(key string, err error) { t.Error(key, err) })
		if !errors.Is(err, context.Canceled) || steps != 10 {
			t.Fatalf("to %s: %d steps, %v", c.to, steps, err)
		}
		h.proxy.Set(s3test.Fault{Status: 503})
		failed := 0
		if result, err := h.keeper.Move(t.Context(), c.to, func(int64) {}, func(string, error) { failed++ }); err != nil || failed != n+1-10 || result.Failed != failed {
			t.Errorf("to %s with the store away: %+v, %d failed, %v", c.to, result, failed, err)
		}
		h.proxy.Set(s3test.Fault{})
		for id, data := range audio {
			h.plays(id, data) // half here, half there
		}
		result, err := h.keeper.Move(t.Context(), c.to, func(int64) {}, func(key string, err error) { t.Error(key, err) })
		if err != nil || result.Moved.Count != n+1-10 || result.Failed != 0 {
			t.Errorf("to %s: %+v, %v", c.to, result, err)
		}
		h.keeper.Round(t.Context(), noon)
		h.holds(c.files, c.objects)
		for id, data := range audio {
			h.plays(id, data)
		}
		if result, problems := h.check(false); result.Findings != 0 {
			t.Errorf("to %s: %v", c.to, problems)
		}
	}
}

// A copy that is not what was received never replaces the original.
func TestMoveRefusesDamagedBytes(t *testing.T) {
	h := newHouse(t)
	h.send("object", noise(1, 1000))
	h.keeper.Round(t.Context(), noon)
	h.restart(false)
	h.send("file", noise(2, 1000))
	h.restart(true)
	h.put(h.key("object"), noise(3, 1000))
	h.write(h.key("file"), noise(4, 1000))
	for _, to := range []recording.Place{recording.InFolder, recording.InObjects} {
		var said []string
		result, err := h.keeper.Move(t.Context(), to, func(int64) {}, func(_ string, err error) { said = append(said, err.Error()) })
		if err != nil || result.Failed != 1 || len(said) != 1 || !strings.Contains(said[0], "damaged") {
			t.Errorf("to %s: %+v, %v, %v", to, result, said, err)
		}
	}
	h.holds(1, 1)
}

func TestMoveLeavesOtherFoldersAlone(t *testing.T) {
	h := newHouse(t)
	h.send("call", noise(1, 1000))
	elsewhere, err := blob.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	far := recording.NewKeeper(h.store, elsewhere, h.objects, nil, nil)
	defer far.Close()
	result, err := far.Move(t.Context(), recording.InObjects, func(int64) {}, func(key string, err error) { t.Error(key, err) })
	if err != nil || result.Elsewhere != 1 || result.Moved.Count != 0 {
		t.Errorf("%+v, %v", result, err)
	}
}
