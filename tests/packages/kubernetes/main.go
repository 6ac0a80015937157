// Decodes Kubernetes objects from the standard input into Kubernetes' own types. A field that a type does not have, a value of another
// type, or an unknown kind is an error. Prints kind and name of each.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

type object interface{ GetName() string }

var types = map[string]func() object{
	"apps/v1 StatefulSet":                     func() object { return &apps.StatefulSet{} },
	"v1 ConfigMap":                            func() object { return &core.ConfigMap{} },
	"v1 Secret":                               func() object { return &core.Secret{} },
	"v1 Service":                              func() object { return &core.Service{} },
	"v1 ServiceAccount":                       func() object { return &core.ServiceAccount{} },
	"networking.k8s.io/v1 NetworkPolicy":      func() object { return &networking.NetworkPolicy{} },
	"policy/v1 PodDisruptionBudget":           func() object { return &policy.PodDisruptionBudget{} },
	"monitoring.coreos.com/v1 ServiceMonitor": func() object { return &monitoring.ServiceMonitor{} },
}

func decode(document []byte) error {
	var kind meta.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return err
	}
	if kind.Kind == "" {
		return nil
	}
	make, known := types[kind.APIVersion+" "+kind.Kind]
	if !known {
		return fmt.Errorf("unknown kind %s %s", kind.APIVersion, kind.Kind)
	}
	into := make()
	if err := yaml.UnmarshalStrict(document, into); err != nil {
		return fmt.Errorf("%s: %w", kind.Kind, err)
	}
	fmt.Println(kind.Kind, into.GetName())
	return nil
}

func main() {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(os.Stdin))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			err = decode(document)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
