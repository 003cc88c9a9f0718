package state

import (
	"cmp"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/pintle/pintle/internal/store"
)

// Function is what belongs to a Lambda function as a whole. Its code and configuration are those of its versions.
type Function struct {
	Name        string
	Tags        map[string]string `json:",omitempty"`
	Versions    int               `json:",omitzero"`  // the number of the last one that was published
	Concurrency *int32            `json:",omitempty"` // reserved
	// Policies are the resource-based policies, by qualifier; "" is the unqualified function's.
	Policies map[string]FunctionPolicy `json:",omitempty"`
}

// FunctionPolicy is a policy that says who may invoke a function.
type FunctionPolicy struct {
	Document   string
	RevisionID string
}

// Latest is the version that can be changed.
const Latest = "$LATEST"

// FunctionVersion is one version of a function: Latest, or a published one that never changes.
type FunctionVersion struct {
	types.FunctionConfiguration
	Code FunctionCode
	// Order sorts versions: 0 for Latest, or the number.
	Order int
}

// FunctionCode is where a version's code is: a zip file in the store of code, by its SHA-256 in hexadecimal, or an image.
type FunctionCode struct {
	SHA256 string `json:",omitempty"`
	Image  string `json:",omitempty"` // as its caller named it
	// Resolved is the image by its digest, as it was when the version got it; the same as Image if that is of another registry.
	Resolved string   `json:",omitempty"`
	Layers   []string `json:",omitempty"` // the layers' zip files, likewise
	// How many bytes are in the zip file, and in those of the layers.
	Unzipped       int64 `json:",omitzero"`
	LayersUnzipped int64 `json:",omitzero"`
}

// ImageToRun returns the image of a version that is one.
func (c *FunctionCode) ImageToRun() string { return cmp.Or(c.Resolved, c.Image) }

// Files returns the zip files that the code is of.
func (c *FunctionCode) Files() (all []string) {
	if c.SHA256 != "" {
		all = append(all, c.SHA256)
	}
	return append(all, c.Layers...)
}

// FunctionAlias is a name for a version.
type FunctionAlias struct {
	Function string
	types.AliasConfiguration
}

// FunctionInvokeConfig is how asynchronous invocations of a function, a version or an alias are tried.
type FunctionInvokeConfig struct {
	Function  string
	Qualifier string
	types.FunctionEventInvokeConfig
}

// LayerVersion is a version of a layer.
type LayerVersion struct {
	Name   string
	SHA256 string // of its zip file, in hexadecimal
	types.LayerVersionsListItem
	Content  types.LayerVersionContentOutput
	Unzipped int64 `json:",omitzero"` // how many bytes are in the zip file
	Deleted  bool  `json:",omitzero"` // it's kept for its number, and so that functions that have it go on
}

// EventSourceMapping has a function called with what is in a queue.
type EventSourceMapping struct {
	types.EventSourceMappingConfiguration
	Function string
	Tags     map[string]string `json:",omitempty"`
}

// Invocation is an asynchronous invocation that isn't over yet.
type Invocation struct {
	ID        string // its request's
	Function  string
	Version   string // that was asked for: a version's number, an alias or ""
	Payload   []byte
	Context   string `json:",omitempty"` // the client's, in Base64
	Source    string `json:",omitempty"` // the ARN of what invokes it, for destinations
	At        time.Time
	Due       time.Time
	Tries     int // failed ones
	Throttled int `json:",omitzero"` // how often it found no room
}

func (i *Invocation) dueAt() string { return i.Due.UTC().Format("2006-01-02T15:04:05.000000000") }

// FunctionEnvironment is an execution environment: a task that was, or is about to be, started for a function's version. The row is written
// before the task is, so that no task is left that nobody knows.
type FunctionEnvironment struct {
	ID       string // which the task was StartedBy
	Cluster  string
	Function string
	Version  string
}

// EnvironmentStarter begins what tasks of execution environments are StartedBy.
const EnvironmentStarter = "lambda/"

var (
	functions = &store.Definition[*Function]{Name: "functions", Key: func(f *Function) string { return f.Name }}

	versionsByFunction = Index[*FunctionVersion]{Name: "function", Value: func(f *FunctionVersion) string { return *f.FunctionName }}
	functionVersions   = &store.Definition[*FunctionVersion]{
		Name:    "functionversions",
		Key:     func(f *FunctionVersion) string { return FunctionKey(*f.FunctionName, *f.Version) },
		Indexes: []Index[*FunctionVersion]{versionsByFunction},
	}

	aliasesByFunction = Index[*FunctionAlias]{Name: "function", Value: func(a *FunctionAlias) string { return a.Function }}
	functionAliases   = &store.Definition[*FunctionAlias]{
		Name:    "functionaliases",
		Key:     func(a *FunctionAlias) string { return FunctionKey(a.Function, *a.Name) },
		Indexes: []Index[*FunctionAlias]{aliasesByFunction},
	}

	invokeConfigsByFunction = Index[*FunctionInvokeConfig]{Name: "function", Value: func(c *FunctionInvokeConfig) string { return c.Function }}
	functionInvokeConfigs   = &store.Definition[*FunctionInvokeConfig]{
		Name:    "functioninvokeconfigs",
		Key:     func(c *FunctionInvokeConfig) string { return FunctionKey(c.Function, c.Qualifier) },
		Indexes: []Index[*FunctionInvokeConfig]{invokeConfigsByFunction},
	}

	layersByName  = Index[*LayerVersion]{Name: "name", Value: func(l *LayerVersion) string { return l.Name }}
	layerVersions = &store.Definition[*LayerVersion]{
		Name:    "layerversions",
		Key:     func(l *LayerVersion) string { return FunctionKey(l.Name, strconv.FormatInt(l.Version, 10)) },
		Indexes: []Index[*LayerVersion]{layersByName},
	}

	mappingsByFunction = Index[*EventSourceMapping]{Name: "function", Value: func(m *EventSourceMapping) string { return m.Function }}
	eventSources       = &store.Definition[*EventSourceMapping]{
		Name:    "eventsourcemappings",
		Key:     func(m *EventSourceMapping) string { return *m.UUID },
		Indexes: []Index[*EventSourceMapping]{mappingsByFunction},
	}

	invocationsByDue = Index[*Invocation]{Name: "due", Value: (*Invocation).dueAt}
	// invocationsByFunction orders those of each function by when they are due.
	invocationsByFunction = Index[*Invocation]{Name: "function", Value: func(i *Invocation) string { return i.Function + "\x00" + i.dueAt() }}
	invocations           = &store.Definition[*Invocation]{
		Name:    "invocations",
		Key:     func(i *Invocation) string { return i.ID },
		Indexes: []Index[*Invocation]{invocationsByDue, invocationsByFunction},
	}

	functionEnvironments = &store.Definition[*FunctionEnvironment]{
		Name: "functionenvironments",
		Key:  func(e *FunctionEnvironment) string { return e.ID },
	}
)

// FunctionKey returns the key of what belongs to a function by a qualifier.
func FunctionKey(function, qualifier string) string { return function + ":" + qualifier }

// VersionsOf returns the versions of a function.
func (v *View) VersionsOf(function string) iter.Seq[*FunctionVersion] {
	return v.FunctionVersions.By(versionsByFunction, function)
}

// AliasesOf returns the aliases of a function.
func (v *View) AliasesOf(function string) iter.Seq[*FunctionAlias] {
	return v.FunctionAliases.By(aliasesByFunction, function)
}

// InvokeConfigsOf returns how asynchronous invocations of a function, its versions and its aliases are tried.
func (v *View) InvokeConfigsOf(function string) iter.Seq[*FunctionInvokeConfig] {
	return v.FunctionInvokeConfigs.By(invokeConfigsByFunction, function)
}

// LayersNamed returns the versions of a layer.
func (v *View) LayersNamed(name string) iter.Seq[*LayerVersion] {
	return v.LayerVersions.By(layersByName, name)
}

// MappingsOf returns the event source mappings of a function.
func (v *View) MappingsOf(function string) iter.Seq[*EventSourceMapping] {
	return v.EventSources.By(mappingsByFunction, function)
}

// InvocationsByDue returns the asynchronous invocations, the longest due first.
func (v *View) InvocationsByDue() iter.Seq[*Invocation] {
	return v.Invocations.InOrder(invocationsByDue)
}

// InvokedAfter returns the first function by name after another one that has asynchronous invocations, or "". Watches ignore it.
func (v *View) InvokedAfter(function string) string {
	for i := range v.Invocations.InOrderAfter(invocationsByFunction, function+"\x01") {
		return i.Function
	}
	return ""
}

// InvocationsOf returns the asynchronous invocations of a function, the longest due first. Watches ignore it.
func (v *View) InvocationsOf(function string) iter.Seq[*Invocation] {
	return func(yield func(*Invocation) bool) {
		for i := range v.Invocations.InOrderAfter(invocationsByFunction, function+"\x00") {
			if i.Function != function || !yield(i) {
				return
			}
		}
	}
}

// DeleteFunction deletes a function and all that is its own. Event source mappings stay, as on AWS, and find no function.
func (tx *Tx) DeleteFunction(name string) {
	for f := range tx.VersionsOf(name) {
		tx.FunctionVersions.Delete(FunctionKey(name, *f.Version))
	}
	for a := range tx.AliasesOf(name) {
		tx.FunctionAliases.Delete(FunctionKey(name, *a.Name))
	}
	for c := range tx.InvokeConfigsOf(name) {
		tx.FunctionInvokeConfigs.Delete(FunctionKey(name, c.Qualifier))
	}
	tx.Functions.Delete(name)
}

// functionTables are the tables of AWS Lambda.
type functionTables struct {
	EventSources          Table[*EventSourceMapping]
	FunctionAliases       Table[*FunctionAlias]
	FunctionEnvironments  Table[*FunctionEnvironment]
	FunctionInvokeConfigs Table[*FunctionInvokeConfig]
	Functions             Table[*Function]
	FunctionVersions      Table[*FunctionVersion]
	Invocations           Table[*Invocation]
	LayerVersions         Table[*LayerVersion]
}

// newFunctionTables binds the tables to a view.
func newFunctionTables(v *store.View) functionTables {
	return functionTables{
		EventSources:          eventSources.In(v),
		FunctionAliases:       functionAliases.In(v),
		FunctionEnvironments:  functionEnvironments.In(v),
		FunctionInvokeConfigs: functionInvokeConfigs.In(v),
		Functions:             functions.In(v),
		FunctionVersions:      functionVersions.In(v),
		Invocations:           invocations.In(v),
		LayerVersions:         layerVersions.In(v),
	}
}

// IsFunction reports whether an ARN is that of a function.
func IsFunction(arn string) bool { return strings.HasPrefix(arn, "arn:aws:lambda:") }
