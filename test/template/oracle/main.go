// Reads requests as lines of JSON from its standard input, and answers each with a line: what Go's text/template with sprig makes of a
// template, the orchestrator's strategic merge of a pod and a patch, or the JSON that its command line reads in a document of YAML. The tests of this folder compare it with ours.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
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
	// For the merge keys of a Pod.
	Keys bool `json:"keys"`
	// For a document of YAML.
	YAML *string `json:"yaml"`
}

type answer struct {
	Output string          `json:"output"`
	Keys   []string        `json:"keys,omitempty"`
	Merged json.RawMessage `json:"merged,omitempty"`
	JSON   string          `json:"json,omitempty"`
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
		} else if given.Keys {
			done = answer{Keys: mergeKeys(reflect.TypeFor[corev1.Pod](), "", nil)}
		} else if given.YAML != nil {
			done = read(*given.YAML)
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
