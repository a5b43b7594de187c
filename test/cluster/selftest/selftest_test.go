// Package selftest proves a cluster from start to end. It needs root.
package selftest

import (
	"bytes"
	"embed"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

//go:embed testdata
var testdata embed.FS

const namespace = "kc-selftest"

var bin, dir string

func TestCluster(t *testing.T) {
	if bin = os.Getenv("CLUSTER_BIN"); bin == "" {
		t.Fatal("CLUSTER_BIN is not set: the folder of the programs that build.js builds")
	}
	dir = t.TempDir()
	images := fmt.Sprintf(`{"echo": {"argv": [%q]}, "webhook": {"argv": [%q]}, "host": {"argv": ["/bin/sleep"], "args": ["100000"]}}`,
		bin+"/echo", bin+"/webhook")
	if err := os.WriteFile(filepath.Join(dir, "images.json"), []byte(images), 0o644); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	must(t, "", bin+"/cluster", "up", "--dir", dir, "--name", "selftest", "--cidr-index", "49", "--nodes", "n1=r1/z1,n2=r1/z2")
	t.Cleanup(func() { exec.Command(bin+"/cluster", "down", "--dir", dir).Run() })
	t.Logf("up after %s", time.Since(start))

	steps := []struct {
		name string
		run  func(*testing.T)
	}{
		{"echo", echo}, {"features", features}, {"restart", restart}, {"recreate", recreate},
		{"tokens", tokens}, {"signing", signing}, {"webhook", webhook},
	}
	for _, step := range steps {
		if !t.Run(step.name, step.run) {
			t.Fatal(kubectl(t, "", "get", "pods,events", "-A"))
		}
	}
	t.Run("down", func(t *testing.T) {
		must(t, "", bin+"/cluster", "down", "--dir", dir)
		nothingLeft(t)
	})
}

func echo(t *testing.T) {
	start := time.Now()
	kubectl(t, manifest("echo.yaml"), "apply", "-f", "-")
	kubectl(t, "", "wait", "--for=condition=Available", "--timeout=60s", "deployment/echo")
	t.Logf("two replicas available after %s", time.Since(start))
	kubectl(t, "", "wait", "--for=condition=Ready", "--timeout=60s", "pod/client")
	ip := kubectl(t, "", "get", "service", "echo", "-o", "jsonpath={.spec.clusterIP}")
	for _, host := range []string{ip, "echo", "echo.default.svc.cluster.local"} {
		eventually(t, `"path":"/hello"`, func() string { return inClient("curl", "-sS", "-m", "2", "http://"+host+"/hello") })
	}
	eventually(t, "GET echo", func() string { return try("logs", "-l", "app=echo") })
	lb := kubectl(t, "", "get", "service", "echo", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}")
	contains(t, must(t, "", bin+"/cluster", "exec", "--dir", dir, "--", "curl", "-sS", "-m", "2", "http://"+lb+"/lb"), `"path":"/lb"`)
	contains(t, kubectl(t, "", "get", "nodes", "-L", "topology.kubernetes.io/zone"), "z2")
}

func features(t *testing.T) {
	kubectl(t, manifest("features.yaml"), "apply", "-f", "-")
	kubectl(t, "", "wait", "--for=condition=Ready", "--timeout=60s", "pod/features")
	in := func(command string) string {
		return kubectl(t, "", "exec", "features", "-c", "main", "--", "sh", "-c", command)
	}
	contains(t, in("cat /scratch/order"), "first\nsidecar\nlast")
	contains(t, in("cat /scratch/env"), "blue sesame 10.149.")
	contains(t, in("cat /etc/deep/secret/word"), "sesame")
	contains(t, in("id -u; id -G; stat -c %g /scratch"), "1337\n1337 2000\n2000")
	contains(t, in("cat /var/run/secrets/mesh/labels /var/run/secrets/mesh/color"), `app="features"`)
	contains(t, in("cat /var/run/secrets/mesh/ca.crt"), "BEGIN CERTIFICATE")
	contains(t, in("touch /file && ls /file; echo $FROM_color"), "blue")
	contains(t, try("logs", "features", "-c", "main"), "out\n")
}

func restart(t *testing.T) {
	pod := kubectl(t, "", "get", "pods", "-l", "app=echo", "-o", "jsonpath={.items[0].metadata.name}")
	try("exec", pod, "--", "sh", "-c", "kill 1") // may end with 137: the container's end kills the exec too
	eventually(t, "1 true", func() string {
		return try("get", "pod", pod, "-o", "jsonpath={.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}")
	})
}

func recreate(t *testing.T) {
	names := func() string { return try("get", "pods", "-l", "app=echo", "-o", "jsonpath={.items[*].metadata.name}") }
	gone := strings.Fields(names())[0]
	kubectl(t, "", "delete", "pod", gone)
	kubectl(t, "", "wait", "--for=condition=Available", "--timeout=60s", "deployment/echo")
	if now := names(); strings.Contains(now, gone) || len(strings.Fields(now)) != 2 {
		t.Fatalf("pods %s after %s was deleted", now, gone)
	}
}

// tokens has a pod's projected token reviewed, for its audience and for another.
func tokens(t *testing.T) {
	token := kubectl(t, "", "exec", "features", "-c", "main", "--", "cat", "/var/run/secrets/mesh/token")
	review := func(audience string) string {
		return kubectl(t, fmt.Sprintf(`{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
			"spec": {"token": %q, "audiences": [%q]}}`, token, audience), "create", "-o", "yaml", "-f", "-")
	}
	contains(t, review("mesh-ca"), "system:serviceaccount:default:default")
	contains(t, review("other"), "error:")
	contains(t, inClient("sh", "-c", `curl -sS -m 5 --cacert /var/run/secrets/kubernetes.io/serviceaccount/ca.crt \
		-H "Authorization: Bearer $(cat /var/run/secrets/kubernetes.io/serviceaccount/token)" https://kubernetes.default/api/v1/secrets`),
		`cannot list resource \"secrets\"`)
}

func signing(t *testing.T) {
	request := must(t, "", "openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", filepath.Join(dir, "csr.key"), "-subj", "/CN=someone")
	request = request[strings.Index(request, "-----BEGIN CERTIFICATE REQUEST"):]
	kubectl(t, fmt.Sprintf(`{"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "someone"},
		"spec": {"signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"], "request": %q}}`,
		base64.StdEncoding.EncodeToString([]byte(request))), "create", "-f", "-")
	kubectl(t, "", "certificate", "approve", "someone")
	eventually(t, "LS0t", func() string { return try("get", "csr", "someone", "-o", "jsonpath={.status.certificate}") })
}

// webhook runs an admission webhook as a pod behind a Service.
func webhook(t *testing.T) {
	cert, key := filepath.Join(dir, "webhook.crt"), filepath.Join(dir, "webhook.key")
	must(t, "", "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-keyout", key, "-out", cert,
		"-subj", "/CN=webhook", "-addext", "subjectAltName=DNS:webhook.default.svc")
	kubectl(t, "", "create", "secret", "tls", "webhook", "--cert", cert, "--key", key)
	kubectl(t, manifest("webhook.yaml"), "apply", "-f", "-")
	kubectl(t, "", "wait", "--for=condition=Available", "--timeout=60s", "deployment/webhook")
	ca, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, fmt.Sprintf(`{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": "inject"},
		"webhooks": [{"name": "inject.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
		"clientConfig": {"caBundle": %q, "service": {"namespace": "default", "name": "webhook", "path": "/mutate"}},
		"objectSelector": {"matchLabels": {"inject": "yes"}},
		"rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]}]}`,
		base64.StdEncoding.EncodeToString(ca)), "apply", "-f", "-")
	// The API server learns of the configuration, and kube-proxy of the Service, a little later.
	eventually(t, "redirect", func() string {
		try("delete", "pod", "injected", "--now", "--ignore-not-found")
		if out, err := command(manifest("injected.yaml"), bin+"/kubectl", "--kubeconfig", dir+"/kubeconfig/admin", "apply", "-f", "-"); err != nil {
			t.Log(out)
			return out
		}
		return try("get", "pod", "injected", "-o", "jsonpath={.spec.initContainers[*].name}")
	})
	kubectl(t, "", "wait", "--for=condition=Ready", "--timeout=60s", "pod/injected")
	ip := kubectl(t, "", "get", "pod", "injected", "-o", "jsonpath={.status.podIP}")
	contains(t, inClient("curl", "-sS", "-m", "2", "http://"+ip+":9999/redirected"), `"path":"/redirected"`)
}

func nothingLeft(t *testing.T) {
	if _, err := os.Stat("/run/netns/" + namespace); err == nil {
		t.Errorf("the namespace %s is left", namespace)
	}
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), dir) {
		t.Errorf("mounts are left:\n%s", mounts)
	}
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range processes {
		if text, _ := os.ReadFile(file); bytes.Contains(text, []byte(dir)) || bytes.HasPrefix(text, []byte(bin+"/echo")) {
			t.Errorf("process left: %s", text)
		}
	}
}

func manifest(name string) string {
	text, err := testdata.ReadFile("testdata/" + name)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func command(stdin string, argv ...string) (string, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func must(t *testing.T, stdin string, argv ...string) string {
	t.Helper()
	out, err := command(stdin, argv...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return out
}

// kubectl runs on the host, through the forwarded port.
func kubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	return must(t, stdin, append([]string{bin + "/kubectl", "--kubeconfig", dir + "/kubeconfig/admin"}, args...)...)
}

func try(args ...string) string {
	out, _ := command("", append([]string{bin + "/kubectl", "--kubeconfig", dir + "/kubeconfig/admin"}, args...)...)
	return out
}

func inClient(argv ...string) string {
	return try(append([]string{"exec", "client", "--"}, argv...)...)
}

func contains(t *testing.T, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Fatalf("no %q in:\n%s", part, text)
	}
}

func eventually(t *testing.T, part string, f func() string) {
	t.Helper()
	var text string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if text = f(); strings.Contains(text, part) {
			return
		}
	}
	contains(t, text, part)
}
