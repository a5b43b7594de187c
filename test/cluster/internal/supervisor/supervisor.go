// Package supervisor runs a cluster's components. It is the first process of
// the cluster's PID namespace: when it ends, the kernel ends all the others.
package supervisor

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"

	"cluster/internal/state"
)

// ListenerFD is the listener on the host's loopback that `up` passes on.
const ListenerFD = 3

// OwnerFD is a pipe whose other end the owner of the cluster holds.
const OwnerFD = 4

// Run starts everything, writes the file "ready" and stays. With untilEOF it
// ends when the owner's end of the pipe is closed, which the kernel does when
// the owner is killed.
func Run(c *state.Cluster, untilEOF bool) error {
	if untilEOF {
		go func() {
			io.Copy(io.Discard, os.NewFile(OwnerFD, "owner"))
			os.Exit(0)
		}()
	}
	if err := prepareMounts(c); err != nil {
		return err
	}
	if err := prepareNetwork(c); err != nil {
		return err
	}
	if err := os.WriteFile(c.Path("hosts"), nil, 0o644); err != nil {
		return err
	}
	if err := forward(c); err != nil {
		return err
	}
	go keep(c, etcd(c))
	if err := await(etcdURL + "/health"); err != nil {
		return err
	}
	go keep(c, apiserver(c))
	if err := await(c.APIServer() + "/readyz"); err != nil {
		return err
	}
	list, err := workers(c)
	if err != nil {
		return err
	}
	for _, w := range list {
		go keep(c, w)
	}
	api, err := connect(c)
	if err != nil {
		return err
	}
	for _, object := range baseObjects(c) {
		if err := api.create(object[0], object[1]); err != nil {
			return err
		}
	}
	wanted := []string{"/api/v1/namespaces/default/serviceaccounts/default", "/api/v1/namespaces/default/configmaps/kube-root-ca.crt"}
	for _, path := range wanted {
		if err := api.await(path, func([]byte) bool { return true }); err != nil {
			return err
		}
	}
	for _, node := range c.Nodes {
		if err := api.await("/api/v1/nodes/"+node.Name, isReady); err != nil {
			return err
		}
	}
	if err := await("http://127.0.0.1:8181/ready"); err != nil {
		return err
	}
	if err := os.WriteFile(c.Path("ready"), nil, 0o644); err != nil {
		return err
	}
	select {}
}

// keep runs a component and starts it again whenever it ends, each time later,
// unless it ran for a while.
func keep(c *state.Cluster, p component) {
	for delay := time.Second; ; delay *= 2 {
		log, err := os.OpenFile(c.Path("logs", p.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			fmt.Println(err)
			return
		}
		cmd := exec.Command(p.argv[0], p.argv[1:]...)
		cmd.Stdout, cmd.Stderr = log, log
		started := time.Now()
		err = cmd.Run()
		log.Close()
		if time.Since(started) > 5*time.Second {
			delay = time.Second
		}
		fmt.Printf("%s %s ended: %v\n", time.Now().Format(time.TimeOnly), p.name, err)
		time.Sleep(delay)
	}
}

// await polls a URL until it answers 200.
func await(url string) error {
	client := &http.Client{Timeout: 2 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	var last string
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		response, err := client.Get(url)
		if err != nil {
			last = err.Error()
			continue
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return nil
		}
		last = response.Status + " " + string(body)
	}
	return fmt.Errorf("%s is not ready: %s", url, last)
}

// forward connects the listener on the host's loopback with the API server.
// A socket stays in the network namespace that it was made in.
func forward(c *state.Cluster) error {
	listener, err := net.FileListener(os.NewFile(ListenerFD, "listener"))
	if err != nil {
		return err
	}
	target := fmt.Sprintf("127.0.0.1:%d", c.APIPort())
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				server, err := net.Dial("tcp", target)
				if err != nil {
					return
				}
				defer server.Close()
				go func() {
					io.Copy(server, client)
					server.(*net.TCPConn).CloseWrite()
				}()
				io.Copy(client, server)
			}()
		}
	}()
	return nil
}
