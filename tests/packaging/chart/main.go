// Renders a chart's templates as Helm does, with the functions that ours use: chart folder, then values as YAML.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := render(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(chart string, given []string) error {
	values, described := map[string]any{}, map[string]any{}
	if err := read(filepath.Join(chart, "values.yaml"), &values); err != nil {
		return err
	}
	if err := read(filepath.Join(chart, "Chart.yaml"), &described); err != nil {
		return err
	}
	for _, text := range given {
		more := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(text), &more); err != nil {
			return err
		}
		merge(values, more)
	}
	root := map[string]any{
		"Values":  values,
		"Release": map[string]any{"Name": "desk", "Namespace": "tools", "Service": "Helm"},
		"Chart": map[string]any{
			"Name": described["name"], "Version": described["version"], "AppVersion": described["appVersion"],
		},
	}
	return write(filepath.Join(chart, "templates"), root)
}

// write prints what each template makes; those whose names begin with an underscore only define.
func write(folder string, root map[string]any) error {
	all := template.New("chart").Option("missingkey=error")
	functions := sprig.TxtFuncMap()
	functions["toYaml"] = func(value any) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	functions["include"] = func(name string, data any) (string, error) {
		var made bytes.Buffer
		err := all.ExecuteTemplate(&made, name, data)
		return made.String(), err
	}
	paths, _ := filepath.Glob(filepath.Join(folder, "*"))
	if _, err := all.Funcs(functions).ParseFiles(paths...); err != nil {
		return err
	}
	for _, path := range paths {
		name := filepath.Base(path)
		if strings.HasPrefix(name, "_") {
			continue
		}
		var made bytes.Buffer
		if err := all.ExecuteTemplate(&made, name, root); err != nil {
			return err
		}
		if strings.HasSuffix(name, ".yaml") {
			fmt.Printf("---\n%s\n", made.String())
		}
	}
	return nil
}

func read(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return yaml.UnmarshalStrict(text, into)
}

func merge(values, more map[string]any) {
	for name, value := range more {
		own, isTable := values[name].(map[string]any)
		table, isMore := value.(map[string]any)
		if isTable && isMore {
			merge(own, table)
		} else {
			values[name] = value
		}
	}
}
