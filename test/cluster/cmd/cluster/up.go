package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cluster/internal/pki"
	"cluster/internal/state"
)

func up(args []string) error {
	flags := flag.NewFlagSet("up", flag.ExitOnError)
	dir := flags.String("dir", "", "the cluster's directory (needed)")
	name := flags.String("name", "a", "the cluster's name; its network namespace is kc-NAME")
	index := flags.Int("cidr-index", 0, "0 to 49; clusters on one host need different ones")
	images := flags.String("images", "", "JSON file that maps images to commands (default DIR/images.json)")
	nodes := flags.String("nodes", "", "NAME[=REGION/ZONE],... (default one node, NAME-node)")
	untilEOF := flags.Bool("until-eof", false, "stay, and end the cluster when standard input is closed, however the owner of this command ends")
	timeout := flags.Duration("timeout", 3*time.Minute, "how long to wait for the nodes")
	flags.Parse(args)
	if *dir == "" || *index < 0 || *index > 49 {
		flags.Usage()
		os.Exit(2)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := &state.Cluster{Name: *name, Index: *index, Bin: filepath.Dir(self), Nodes: parseNodes(*nodes, *name)}
	if c.Dir, err = filepath.Abs(*dir); err != nil {
		return err
	}
	if c.Images = c.Path("images.json"); *images != "" {
		if c.Images, err = filepath.Abs(*images); err != nil {
			return err
		}
	}
	if old, err := state.Load(c.Dir); err == nil {
		if old.Running() {
			return fmt.Errorf("the cluster in %s already runs", c.Dir)
		}
		if err := down(c.Dir); err != nil {
			return err
		}
	}
	if err := prepare(c); err != nil {
		return err
	}
	if err := start(c, *untilEOF); err != nil {
		return err
	}
	if err := wait(c, *timeout); err != nil || !*untilEOF {
		return err
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	return down(c.Dir)
}

func parseNodes(text, cluster string) []state.Node {
	if text == "" {
		text = cluster + "-node"
	}
	var nodes []state.Node
	for _, item := range strings.Split(text, ",") {
		n := state.Node{Region: "region1", Zone: "zone1"}
		name, place, ok := strings.Cut(item, "=")
		if n.Name = name; ok {
			n.Region, n.Zone, _ = strings.Cut(place, "/")
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// prepare writes the cluster's files and makes its network namespace.
func prepare(c *state.Cluster) error {
	for _, binary := range []string{"cluster", "kube", "coredns"} {
		if _, err := os.Stat(c.Binary(binary)); err != nil {
			return fmt.Errorf("%w: build the binaries first", err)
		}
	}
	if err := os.MkdirAll(c.Path("logs"), 0o755); err != nil {
		return err
	}
	resolv := fmt.Sprintf("nameserver %s\nsearch default.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n", c.NodeIP(0))
	if err := os.WriteFile(c.Path("resolv.conf"), []byte(resolv), 0o644); err != nil {
		return err
	}
	if _, err := os.Stat(c.Images); err != nil {
		if err := os.WriteFile(c.Images, []byte("{}\n"), 0o644); err != nil {
			return err
		}
	}
	if err := pki.Write(c); err != nil {
		return err
	}
	if err := c.Save(); err != nil {
		return err
	}
	return addNamespace(c.Namespace())
}

// addNamespace makes a network namespace. One of this name that no process is in
// was left by a cluster whose owner was killed, and is removed.
func addNamespace(name string) error {
	if _, err := os.Stat("/run/netns/" + name); err == nil {
		out, err := exec.Command("ip", "netns", "pids", name).Output()
		if err != nil || len(out) > 0 {
			return fmt.Errorf("the network namespace %s is in use (%v)", name, err)
		}
		if out, err := exec.Command("ip", "netns", "del", name).CombinedOutput(); err != nil {
			return fmt.Errorf("ip netns del %s: %s", name, out)
		}
	}
	if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
		return fmt.Errorf("ip netns add %s: %s", name, out)
	}
	return nil
}

// start runs the supervisor in the cluster's network namespace and in new mount
// and PID namespaces, detached from this process.
func start(c *state.Cluster, untilEOF bool) error {
	listener, err := net.Listen("tcp", strings.TrimPrefix(c.APIServer(), "https://"))
	if err != nil {
		return err
	}
	listenerFile, err := listener.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	log, err := os.Create(c.Path("logs", "supervisor.log"))
	if err != nil {
		return err
	}
	cmd := exec.Command(c.Binary("cluster"), "supervise", "--dir", c.Dir)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{listenerFile} // supervisor.ListenerFD
	if untilEOF {
		cmd.Args = append(cmd.Args, "--until-eof")
		cmd.ExtraFiles = append(cmd.ExtraFiles, os.Stdin) // supervisor.OwnerFD
	}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the child inherits this thread's network namespace
		if err := enterNetwork(c); err != nil {
			started <- err
			return
		}
		started <- cmd.Start()
	}()
	if err := <-started; err != nil {
		return err
	}
	c.PID, c.Birth = cmd.Process.Pid, state.Birth(cmd.Process.Pid)
	go cmd.Wait()
	return c.Save()
}

// enterNetwork moves the calling thread into the cluster's network namespace.
func enterNetwork(c *state.Cluster) error {
	ns, err := os.Open("/run/netns/" + c.Namespace())
	if err != nil {
		return err
	}
	defer ns.Close()
	return unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
}

func wait(c *state.Cluster, timeout time.Duration) error {
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(c.Path("ready")); err == nil {
			return nil
		}
		if !c.Running() {
			log, _ := os.ReadFile(c.Path("logs", "supervisor.log"))
			return fmt.Errorf("the supervisor ended: %s", log)
		}
	}
	return fmt.Errorf("not ready after %s, see %s", timeout, c.Path("logs"))
}
