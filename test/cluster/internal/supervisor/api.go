package supervisor

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"cluster/internal/state"
)

// api makes requests of the administrator. (kubectl needs a tenth of a second of CPU for each.)
type api struct {
	server string
	client *http.Client
}

func connect(c *state.Cluster) (*api, error) {
	pair, err := tls.LoadX509KeyPair(c.Path("pki", "admin.crt"), c.Path("pki", "admin.key"))
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true}}
	return &api{c.APIServer(), &http.Client{Timeout: 10 * time.Second, Transport: transport}}, nil
}

// create makes an object. The first tries may come before the API server's RBAC rules and its ranges of addresses.
func (a *api) create(collection, object string) error {
	return a.repeat("POST "+collection, func() (string, error) {
		status, body, err := a.send(http.MethodPost, collection, []byte(object))
		if err != nil || status == http.StatusCreated || status == http.StatusConflict {
			return "", err
		}
		return fmt.Sprintf("%d %s", status, body), nil
	})
}

// await asks for an object until it is there and holds a condition.
func (a *api) await(path string, holds func([]byte) bool) error {
	return a.repeat("GET "+path, func() (string, error) {
		status, body, err := a.send(http.MethodGet, path, nil)
		if err != nil || status == http.StatusOK && holds(body) {
			return "", err
		}
		return fmt.Sprintf("%d %s", status, body), nil
	})
}

// isReady says whether a node has the condition Ready.
func isReady(body []byte) bool {
	var node struct {
		Status struct {
			Conditions []struct{ Type, Status string }
		}
	}
	if json.Unmarshal(body, &node) != nil {
		return false
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == "Ready" {
			return condition.Status == "True"
		}
	}
	return false
}

// repeat tries until there is neither a fault nor an error, a minute at most.
func (a *api) repeat(what string, try func() (fault string, err error)) error {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		fault, err := try()
		if err == nil && fault == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: %s %v", what, fault, err)
		}
	}
}

func (a *api) send(method, path string, body []byte) (int, []byte, error) {
	request, err := http.NewRequest(method, a.server+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := a.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}
