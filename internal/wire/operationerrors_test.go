package wire

import (
	"go/ast"
	"slices"
	"testing"
)

// references is what each function, method and variable of a package names: error codes, and other functions and variables. Names are all
// that is looked at, so what shares a name is one.
type references struct {
	codes  map[string][]string
	refers map[string][]string
}

func referencesIn(t *testing.T, folder string) references {
	t.Helper()
	r := references{map[string][]string{}, map[string][]string{}}
	for _, p := range parseFolder(t, folder) {
		constants := stringConstants(p)
		for _, f := range p.Files {
			for _, d := range f.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					name := d.Name.Name
					if d.Recv != nil {
						name = "." + name
					}
					r.add(name, d, folder, constants)
				case *ast.GenDecl:
					r.addVariables(d, folder, constants)
				}
			}
		}
	}
	return r
}

func (r references) addVariables(d *ast.GenDecl, folder string, constants map[string]string) {
	for _, spec := range d.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for _, name := range v.Names {
			r.add(name.Name, v, folder, constants)
		}
	}
}

func (r references) add(name string, of ast.Node, folder string, constants map[string]string) {
	ast.Inspect(of, func(n ast.Node) bool {
		if code := codeAt(n, folder, constants); code != "" {
			r.codes[name] = append(r.codes[name], code)
		}
		switch n := n.(type) {
		case *ast.Ident:
			r.refers[name] = append(r.refers[name], n.Name)
		case *ast.SelectorExpr:
			r.refers[name] = append(r.refers[name], "."+n.Sel.Name)
		}
		return true
	})
}

// from returns the codes that a function may come to, each with the way there.
func (r references) from(name string) map[string][]string {
	found := map[string][]string{}
	seen := map[string]bool{}
	var walk func(way []string)
	walk = func(way []string) {
		at := way[len(way)-1]
		if seen[at] {
			return
		}
		seen[at] = true
		for _, code := range r.codes[at] {
			found[code] = way
		}
		for _, next := range r.refers[at] {
			walk(append(slices.Clone(way), next))
		}
	}
	walk([]string{name})
	return found
}

// everywhere are codes that any of a service's operations may return on AWS, each with its reason.
var everywhere = map[string]map[string]string{
	"application-autoscaling": {"ValidationException": "the common errors of JSON APIs"},
	"cloudwatch": {
		"InvalidParameterCombinationException": "InvalidParameterCombination in Query: CommonErrors in the API reference",
		"InvalidParameterValueException":       "InvalidParameterValue in Query: CommonErrors in the API reference",
		"MissingRequiredParameterException":    "MissingParameter in Query: CommonErrors in the API reference",
	},
	"logs": {"ValidationException": "the common errors of JSON APIs"},
	"ssm": {
		"AccessDeniedException": "the common errors of JSON APIs",
		"ValidationException":   "the common errors of JSON APIs",
	},
}

// besides are codes that an operation returns on AWS though its model lacks them, or that it never comes to, each with its reason.
var besides = map[string]string{
	"cloudformation EstimateTemplateCost InsufficientCapabilitiesException": "never: it acknowledges all",
	"cloudwatch DeleteDashboards DashboardNotFoundError":                    "API_DeleteDashboards has it, as ResourceNotFound",
	"cloudwatch ListDashboards InvalidNextToken":                            "never: it refuses tokens otherwise",
	"cloudwatch ListMetrics InvalidNextToken":                               "never: it refuses tokens otherwise",
	"sqs ChangeMessageVisibilityBatch MessageNotInflight":                   "of an entry",
	"sqs ChangeMessageVisibilityBatch ReceiptHandleIsInvalid":               "of an entry",
	"sqs DeleteMessage MessageNotInflight":                                  "never: a message that isn't in flight is deleted",
	"sqs DeleteMessageBatch MessageNotInflight":                             "never: a message that isn't in flight is deleted",
	"sqs DeleteMessageBatch ReceiptHandleIsInvalid":                         "of an entry",
	"sqs ReceiveMessage InvalidAttributeName":                               "as GetQueueAttributes has it for the same mistake; not recorded",
	"sqs RemovePermission OverLimit":                                        "never: a policy doesn't grow by what is removed",
	"sqs SendMessageBatch InvalidMessageContents":                           "of an entry",
}

// TestOperationsErrorCodesAreAWSs: every error code that an operation can come to is among those that its model lists, or among those that
// AWS returns besides. It reads the code, so it sees more than what can happen, but not what packages below a service's own make.
func TestOperationsErrorCodesAreAWSs(t *testing.T) {
	used := map[string]bool{}
	for _, c := range []struct {
		folder, botocore string
		least            int // how many codes of operations must be compared at least
	}{
		{"../appautoscaling", "application-autoscaling", 20},
		{"../autoscaling", "autoscaling", 50},
		{"../cloudformation", "cloudformation", 1},
		{"../cloudwatch", "cloudwatch", 60},
		{"../ecs", "ecs", 150},
		{"../iam/sts", "sts", 0},
		{"../logs", "logs", 80},
		{"../sqs", "sqs", 60},
		{"../ssm", "ssm", 15},
	} {
		t.Run(c.botocore, func(t *testing.T) {
			m := botocore(t, c.botocore)
			r := referencesIn(t, c.folder)
			compared := 0
			for operation := range m.Operations {
				known := m.errorsOf(operation)
				for code, way := range r.from("." + operation) {
					compared++
					at := c.botocore + " " + operation + " " + code
					switch {
					case slices.Contains(known, code), beyond[c.botocore][code] != "":
					case everywhere[c.botocore][code] != "":
						used[c.botocore+" "+code] = true
					case besides[at] != "":
						used[at] = true
					default:
						t.Errorf("%s returns %s, by way of %v", operation, code, way)
					}
				}
			}
			if compared < c.least {
				t.Errorf("only %d codes were compared", compared)
			}
		})
	}
	if !t.Failed() {
		checkExceptionsAreUsed(t, used)
	}
}

func checkExceptionsAreUsed(t *testing.T, used map[string]bool) {
	t.Helper()
	for at := range besides {
		if !used[at] {
			t.Errorf("%s need not be listed", at)
		}
	}
	for service, codes := range everywhere {
		for code := range codes {
			if !used[service+" "+code] {
				t.Errorf("%s of %s need not be listed", code, service)
			}
		}
	}
}

// errorsOf returns the names and codes of an operation's errors.
func (m *serviceModel) errorsOf(operation string) (codes []string) {
	for _, e := range m.Operations[operation].Errors {
		codes = append(codes, e.Shape, m.Shapes[e.Shape].Error.Code)
	}
	return codes
}
