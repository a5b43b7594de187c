// Writes what Go itself makes of the templates in cases.json into results.json: `go run generate.go` in this folder.
package main

import (
	"bytes"
	"encoding/json"
	"os"
	"text/template"
)

type testCases struct {
	Data      any      `json:"data"`
	Templates []string `json:"templates"`
}

type result struct {
	Output string `json:"output"`
	Error  string `json:"error,omitempty"`
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

func toJSON(value any) (string, error) {
	if value == nil {
		return "{}", nil
	}
	text, err := json.Marshal(value)
	return string(text), err
}

func render(text string, data any) result {
	parsed, err := template.New("t").Funcs(template.FuncMap{"toJSON": toJSON}).Parse(text)
	if err != nil {
		return result{Error: err.Error()}
	}
	var output bytes.Buffer
	if err := parsed.Execute(&output, data); err != nil {
		return result{Error: err.Error()}
	}
	return result{Output: output.String()}
}

func main() {
	content, err := os.ReadFile("cases.json")
	if err != nil {
		panic(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	var cases []testCases
	if err := decoder.Decode(&cases); err != nil {
		panic(err)
	}
	results := []result{}
	for _, given := range cases {
		data := whole(given.Data)
		for _, text := range given.Templates {
			results = append(results, render(text, data))
		}
	}
	var written bytes.Buffer
	encoder := json.NewEncoder(&written)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(results); err != nil {
		panic(err)
	}
	if err := os.WriteFile("results.json", written.Bytes(), 0o644); err != nil {
		panic(err)
	}
}
