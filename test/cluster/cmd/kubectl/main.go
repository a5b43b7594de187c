// Command kubectl is the orchestrator's own client. It is a program apart from kube, since tests run it hundreds of times, and what is linked into a Go
// program is initialized whenever it starts.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
)

func main() { os.Exit(cli.Run(kubectl.NewDefaultKubectlCommand())) }
