// Command cluster runs a Kubernetes cluster in a network namespace of this host.
package main

import (
	"flag"
	"fmt"
	"os"

	"cluster/internal/box"
	"cluster/internal/state"
	"cluster/internal/supervisor"
)

const usage = `usage:
  cluster up --dir DIR [--name a] [--cidr-index 0] [--images FILE] [--nodes NAME[=REGION/ZONE],...] [--until-eof]
  cluster down --dir DIR
  cluster kubeconfig --dir DIR
  cluster exec --dir DIR -- COMMAND [ARGUMENT...]
`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(command string, args []string) error {
	switch command {
	case "container":
		box.Container()
	case "become":
		box.Become()
	case "up":
		return up(args)
	}
	flags := flag.NewFlagSet(command, flag.ExitOnError)
	dir := flags.String("dir", "", "the cluster's directory")
	untilEOF := flags.Bool("until-eof", false, "supervise: end when the passed pipe is closed")
	flags.Parse(args)
	switch command {
	case "supervise":
		c, err := state.Load(*dir)
		if err != nil {
			return err
		}
		return supervisor.Run(c, *untilEOF)
	case "down":
		return down(*dir)
	case "kubeconfig":
		c, err := state.Load(*dir)
		if err != nil {
			return err
		}
		fmt.Println(c.Kubeconfig("admin"))
		return nil
	case "exec":
		return execute(*dir, flags.Args())
	}
	fmt.Fprint(os.Stderr, usage)
	os.Exit(2)
	return nil
}
