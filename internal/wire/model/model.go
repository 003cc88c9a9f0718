// Package model is what clients know of a service: its name, its protocols, the operations that it has on AWS, and what the SDK's
// structs do not tell of them, such as names that follow no rule. Each service describes itself so, in its api.go, with tables
// that internal/wire/gen makes beside it; wire answers by it. Nothing here sees HTTP, and nothing decides anything.
package model

import (
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/traits"

	"github.com/pintle/pintle/internal/wire/call"
)

// API is one AWS service as clients know it, and what answers it.
type API struct {
	Name         string                // in the scope of signatures and in host names: "ecs"
	Title        string                // for people: "Amazon ECS"
	Protocols    []Protocol            // how it is spoken; a request is in the first that claims it
	TargetPrefix string                // before the operation in X-Amz-Target, for JSON
	Version      string                // of the API, for Query and EC2's
	Namespace    string                // of the answers' XML, for Query and EC2's
	CamelCase    bool                  // whether members begin with a lower-case letter
	Names        map[string]string     // of members that are exceptions, by "<Struct>.<Field>"
	InputNames   map[string]string     // of those in requests, for EC2, where the others have the SDK's; nil where they are as in answers
	FormNames    map[string]FormName   // of members that Query calls otherwise, by "<Struct>.<Field>"
	URLMember    string                // of inputs: the URL that a request went to, where it does not say so itself
	TellZero     bool                  // whether a 0 that was sent becomes call.Zero where the struct could not tell it from none
	ErrorSpace   string                // before errors' names in JSON, with a #
	Statuses     map[string]int        // of errors by their codes, where they are not 400 and the SDK does not tell
	QueryErrors  map[string]QueryError // by their names in the model, for a service that began with Query
	Operations   []string              // every operation that the service has on AWS
	Lenient      []string              // those whose unknown members are ignored: nodes of other versions call them
	Constraints  Constraints           // on inputs, checked before the service sees them; none where it has checks of its own
	MaxBody      int64                 // bytes; 1 MiB where it is 0
	Unions       []any                 // a pointer to each variant of the unions that operations use
	NewDocument  func(any) any         // the SDK's document.NewLazyDocument, for a service with documents
	Routes       []Route               // of the operations, for REST
	Places       map[string]Place      // of members, for REST, by "<Struct>.<Field>"
	Roots        map[string]string     // the answers' XML elements, for REST, by operation
	Service      call.Service          // what answers; nil where nothing does yet
}

// Protocol is one of AWS's ways to put a call into HTTP.
type Protocol uint8

// The protocols that wire speaks.
const (
	JSON10   Protocol = iota + 1 // AWS JSON 1.0
	JSON11                       // AWS JSON 1.1
	Query                        // AWS Query
	EC2Query                     // EC2's own Query
	CBOR                         // Smithy RPC v2 CBOR
	RESTJSON                     // paths of labels, JSON in bodies
	S3                           // REST-XML as S3 has it: buckets and keys in the address, XML and streams in bodies
)

// Constraints are what AWS's model says of the inputs of operations, for a service that refuses them in the words that AWS has for
// all of its services.
type Constraints struct {
	Code  string   // of the error that carries what is wrong
	Table string   // made by the generator; empty where nothing is checked
	Only  []string // the operations that are checked; nil for all
}

// QueryError is what an error of a service's model is in Query.
type QueryError struct {
	Code   string
	Status int
}

// QueryErrors are the errors of an SDK package whose code in Query is not their name.
func QueryErrors(types *smithy.TypeRegistry) map[string]QueryError {
	m := map[string]QueryError{}
	for _, t := range types.Entries {
		if e, ok := smithy.SchemaTrait[*traits.AWSQueryError](t.Schema); ok {
			m[t.Schema.ID().Name] = QueryError{e.ErrorCode, e.StatusCode}
		}
	}
	return m
}
