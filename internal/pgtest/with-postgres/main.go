// Command with-postgres runs a command beside a private PostgreSQL cluster whose address it puts into the environment
// variable SIDETONE_TEST_POSTGRES, and removes the cluster when the command ends or is interrupted.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"sidetone/internal/pgtest"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: with-postgres COMMAND [ARGUMENT...]")
		os.Exit(2)
	}
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "with-postgres:", err)
	}
	os.Exit(code)
}

// run gives the exit code of the command; 1 when it could not run or a signal ended it.
func run(args []string) (int, error) {
	// An interrupt from the terminal reaches the command without our help, so ours is caught and dropped; ignoring it
	// would make the command ignore it too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT)
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)
	cluster, err := pgtest.Launch()
	if err != nil {
		return 1, err
	}
	defer cluster.Close()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), pgtest.Variable+"="+cluster.URL("postgres"))
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	go func() {
		for s := range terminate {
			_ = cmd.Process.Signal(s)
		}
	}()
	err = cmd.Wait()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		return max(ended.ExitCode(), 1), nil
	}
	if err != nil {
		return 1, err
	}
	return 0, nil
}
