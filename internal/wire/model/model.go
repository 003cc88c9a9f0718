// Package model describes a service as its clients see it: its name, its protocols, its operations on AWS, and what the SDK's structs
// don't say, such as irregular names. Each service describes itself in its api.go, with tables that internal/wire/gen generates beside
// it, and wire serves it accordingly. Nothing here sees HTTP or decides anything.
package model

import (
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/traits"

	"github.com/pintle/pintle/internal/wire/call"
)

// API is one AWS service as clients see it, and what implements it.
type API struct {
	Name         string                // in signature scopes and host names: "ecs"
	Title        string                // for people: "Amazon ECS"
	Protocols    []Protocol            // a request is in the first one that claims it
	TargetPrefix string                // before the operation in X-Amz-Target, for JSON
	Version      string                // of the API, for Query and EC2Query
	Namespace    string                // of the XML in answers, for Query and EC2Query
	CamelCase    bool                  // whether members' names begin with a lower-case letter
	Names        map[string]string     // irregular names of members, by "<Struct>.<Field>"
	InputNames   map[string]string     // the same in requests, for EC2; nil if they are as in answers
	FormNames    map[string]FormName   // names that differ in Query, by "<Struct>.<Field>"
	URLMember    string                // of inputs: takes the URL that the request was sent to, if it's not set
	TellZero     bool                  // whether a sent 0 becomes call.Zero if the struct can't tell it from no value
	ErrorSpace   string                // prefix of errors' names in JSON, before a #
	Statuses     map[string]int        // HTTP statuses by error code, if not 400 and unknown to the SDK
	Unavailable  string                // code of an error with status 503, if not the common ServiceUnavailable
	QueryErrors  map[string]QueryError // by name in the model, for a service that began with Query
	Operations   []string              // all operations on AWS
	Refuses      []string              // those of the implementation's that only say why Pintle doesn't have them
	Lenient      []string              // operations that ignore unknown members, because nodes of other versions call them
	ErrorDetail  bool                  // whether errors in Query have an element Detail, which is empty
	LenientForms bool                  // whether Query ignores unknown parameters, because clients older than the model's names send them
	Constraints  Constraints           // on inputs, checked before the service sees them; none if the service checks them itself
	MaxBody      int64                 // bytes; 0 means 1 MiB
	Unions       []any                 // a pointer to each variant of the operations' unions
	NewDocument  func(any) any         // the SDK's document.NewLazyDocument, for a service with documents
	Routes       []Route               // of the operations, for REST
	Places       map[string]Place      // of members, for REST, by "<Struct>.<Field>"
	Roots        map[string]string     // of the XML in answers, for REST, by operation
	AllowOrigin  AllowOrigin           // tells browsers what pages of other origins may do, for S3; nil if nothing
	Service      call.Service          // the implementation; nil if there is none yet
}

// Protocol is one of AWS's ways to map a call to HTTP.
type Protocol uint8

// The protocols that wire implements.
const (
	JSON10   Protocol = iota + 1 // AWS JSON 1.0
	JSON11                       // AWS JSON 1.1
	Query                        // AWS Query
	EC2Query                     // EC2's own Query
	CBOR                         // Smithy RPC v2 CBOR
	RESTJSON                     // paths with labels, JSON in bodies
	S3                           // S3's REST-XML: buckets and keys in the address, XML and streams in bodies
)

// Constraints are the constraints on inputs in AWS's model, for services that report violations in AWS's common form ("1 validation error
// detected: …").
type Constraints struct {
	Code  string   // the error's
	Table string   // generated; empty if nothing is checked
	Only  []string // operations to check; nil for all

	TooLong map[string]string // messages of their own for texts that are longer than their shape allows, by shape

	// Worded makes the message of the first violation, for services that report only that: of a constraint that the member at a place breaks.
	Worded func(place, constraint string) string
}

// QueryError is an error's form in Query.
type QueryError struct {
	Code    string
	Status  int
	Message string // in place of the error's own, if not empty
}

// QueryErrors returns the errors of an SDK package whose code in Query isn't their name.
func QueryErrors(types *smithy.TypeRegistry) map[string]QueryError {
	m := map[string]QueryError{}
	for _, t := range types.Entries {
		if e, ok := smithy.SchemaTrait[*traits.AWSQueryError](t.Schema); ok {
			m[t.Schema.ID().Name] = QueryError{Code: e.ErrorCode, Status: e.StatusCode}
		}
	}
	return m
}
