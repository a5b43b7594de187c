// Reads requests as lines of JSON from its standard input, and answers each with a line: what Go's text/template with sprig makes of a
// template, the orchestrator's strategic merge of a pod and a patch, the JSON that its command line reads in a document of YAML, or what Go
// reads of a certificate or key. The tests of this folder compare it with ours.
package main

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"os"
	"reflect"
	"slices"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"golang.org/x/crypto/bcrypt"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

type request struct {
	// For a template. With Floats all numbers of the data are float64, otherwise whole ones are int.
	Template *string `json:"template"`
	Data     json.RawMessage
	Floats   bool `json:"floats"`
	// For a merge.
	Pod   json.RawMessage `json:"pod"`
	Patch json.RawMessage `json:"patch"`
	// For the fields of the specification of a Pod.
	SpecFields bool `json:"specFields"`
	// For the merge keys of a Pod.
	Keys bool `json:"keys"`
	// For a document of YAML.
	YAML *string `json:"yaml"`
	// For the names of sprig's functions.
	Names bool `json:"names"`
	// For a certificate, whose signature is checked with that of its authority.
	Certificate *string `json:"certificate"`
	Authority   string  `json:"authority"`
	// For a private key.
	PrivateKey *string `json:"privateKey"`
	// For a password and its hash.
	Password string  `json:"password"`
	Hash     *string `json:"hash"`
}

type answer struct {
	Output string          `json:"output"`
	Keys   []string        `json:"keys,omitempty"`
	Merged json.RawMessage `json:"merged,omitempty"`
	JSON   string          `json:"json,omitempty"`
	Read   map[string]any  `json:"read,omitempty"`
	Error  string          `json:"error,omitempty"`
}

func whole(value any) any {
	switch typed := value.(type) {
	case json.Number:
		if number, err := typed.Int64(); err == nil {
			return int(number)
		}
		number, _ := typed.Float64()
		return number
	case []any:
		for index := range typed {
			typed[index] = whole(typed[index])
		}
	case map[string]any:
		for key := range typed {
			typed[key] = whole(typed[key])
		}
	}
	return value
}

func toYAML(value any) (string, error) {
	text, err := yaml.Marshal(value)
	return string(text), err
}

func functions() template.FuncMap {
	all := sprig.TxtFuncMap()
	for _, name := range []string{"env", "expandenv", "getHostByName"} {
		delete(all, name)
	}
	all["toYaml"] = toYAML
	return all
}

func render(given request) (done answer) {
	defer func() {
		if failed := recover(); failed != nil {
			done = answer{Error: fmt.Sprint(failed)}
		}
	}()
	var data any
	decoder := json.NewDecoder(bytes.NewReader(given.Data))
	if !given.Floats {
		decoder.UseNumber()
	}
	if err := decoder.Decode(&data); err != nil {
		return answer{Error: "data: " + err.Error()}
	}
	parsed, err := template.New("t").Funcs(functions()).Parse(*given.Template)
	if err != nil {
		return answer{Error: err.Error()}
	}
	var output bytes.Buffer
	if err := parsed.Execute(&output, whole(data)); err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Output: output.String()}
}

func merge(given request) (done answer) {
	defer func() {
		if failed := recover(); failed != nil {
			done = answer{Error: fmt.Sprint(failed)}
		}
	}()
	merged, err := strategicpatch.StrategicMergePatch(given.Pod, given.Patch, corev1.Pod{})
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Merged: merged}
}

// read reads a document as kubectl does.
func read(text string) (done answer) {
	defer func() {
		if failed := recover(); failed != nil {
			done = answer{Error: fmt.Sprint(failed)}
		}
	}()
	value, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{JSON: string(value)}
}

// fieldNames lists the fields of a type in JSON.
func fieldNames(kind reflect.Type) []string {
	var names []string
	for field := range kind.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// mergeKeys lists the fields of a type that are merged: their paths, strategies and keys.
func mergeKeys(kind reflect.Type, path string, found []string) []string {
	for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice {
		kind = kind.Elem()
	}
	if kind.Kind() != reflect.Struct {
		return found
	}
	for field := range kind.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && field.Anonymous {
			found = mergeKeys(field.Type, path, found)
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		inner := strings.TrimPrefix(path+"."+name, ".")
		strategy, key := field.Tag.Get("patchStrategy"), field.Tag.Get("patchMergeKey")
		if strategy != "" {
			found = append(found, inner+" "+strategy+" "+key)
		}
		if field.Type.Kind() == reflect.Slice && !strings.Contains(strategy, "merge") {
			continue
		}
		found = mergeKeys(field.Type, inner, found)
	}
	return found
}

func certificateIn(text string) (*x509.Certificate, error) {
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE" || len(rest) > 0 {
		return nil, errors.New("not one certificate in PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}

func readCertificate(text, authority string) (map[string]any, error) {
	found, err := certificateIn(text)
	if err != nil {
		return nil, err
	}
	signer, err := certificateIn(authority)
	if err != nil {
		return nil, err
	}
	if err := signer.CheckSignature(found.SignatureAlgorithm, found.RawTBSCertificate, found.Signature); err != nil {
		return nil, err
	}
	extensions := []string{}
	for _, each := range found.Extensions {
		extensions = append(extensions, fmt.Sprintf("%v %v %x", each.Id, each.Critical, each.Value))
	}
	return map[string]any{
		"version":    found.Version,
		"serialBits": found.SerialNumber.BitLen(),
		"algorithm":  found.SignatureAlgorithm.String(),
		"keyType":    found.PublicKeyAlgorithm.String(),
		"issuer":     fmt.Sprintf("%x", found.RawIssuer),
		"subject":    fmt.Sprintf("%x", found.RawSubject),
		"publicKey":  fmt.Sprintf("%x", found.RawSubjectPublicKeyInfo),
		"notBefore":  found.NotBefore.Unix(),
		"seconds":    found.NotAfter.Unix() - found.NotBefore.Unix(),
		"extensions": extensions,
	}, nil
}

func readPrivateKey(text string) (map[string]any, error) {
	block, rest := pem.Decode([]byte(text))
	if block == nil || len(rest) > 0 {
		return nil, errors.New("not one block of PEM")
	}
	read := map[string]any{"label": block.Type}
	switch block.Type {
	case "RSA PRIVATE KEY":
		key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
		if err != nil {
			return nil, err
		}
		read["bits"], read["exponent"] = key.N.BitLen(), key.E
	case "EC PRIVATE KEY":
		key, err := x509.ParseECPrivateKey(block.Bytes)
		if err != nil {
			return nil, err
		}
		read["curve"] = key.Curve.Params().Name
	case "DSA PRIVATE KEY":
		var key sprig.DSAKeyFormat
		if rest, err := asn1.Unmarshal(block.Bytes, &key); err != nil || len(rest) > 0 {
			return nil, errors.New("not a DSA key")
		}
		public := new(big.Int).Exp(key.G, key.X, key.P)
		read["bits"], read["version"], read["isPair"] = []int{key.P.BitLen(), key.Q.BitLen()}, key.Version, public.Cmp(key.Y) == 0
	default:
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return nil, err
		}
		read["type"] = fmt.Sprintf("%T", key)
	}
	return read, nil
}

func answerOf(read map[string]any, err error) answer {
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Read: read}
}

func main() {
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var given request
		var done answer
		if err := json.Unmarshal(line, &given); err != nil {
			done = answer{Error: "request: " + err.Error()}
		} else if given.SpecFields {
			done = answer{Keys: fieldNames(reflect.TypeFor[corev1.PodSpec]())}
		} else if given.Keys {
			done = answer{Keys: mergeKeys(reflect.TypeFor[corev1.Pod](), "", nil)}
		} else if given.YAML != nil {
			done = read(*given.YAML)
		} else if given.Names {
			done = answer{Keys: slices.Sorted(maps.Keys(sprig.TxtFuncMap()))}
		} else if given.Certificate != nil {
			done = answerOf(readCertificate(*given.Certificate, given.Authority))
		} else if given.PrivateKey != nil {
			done = answerOf(readPrivateKey(*given.PrivateKey))
		} else if given.Hash != nil {
			cost, err := bcrypt.Cost([]byte(*given.Hash))
			if err == nil {
				err = bcrypt.CompareHashAndPassword([]byte(*given.Hash), []byte(given.Password))
			}
			done = answerOf(map[string]any{"cost": cost}, err)
		} else if given.Template != nil {
			done = render(given)
		} else {
			done = merge(given)
		}
		if err := output.Encode(done); err != nil {
			return
		}
	}
}
