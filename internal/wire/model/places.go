package model

// Route is the form of an operation's requests in REST: a method, a path with labels in braces, and required parameters and headers.
type Route struct {
	Operation, Method, Path string
	Query                   []string // required parameters, some with a value
	Headers                 []string // required
	Status                  int      // of the answer
}

// Place is where a member is in an HTTP message.
type Place struct {
	In   place
	Name string
	Item string // the name of a list's elements inside the list's own element; "" means flattened
}

// place is a part of an HTTP message.
type place uint8

const (
	InBody      place = iota // an element of the body's XML
	InPayload                // the body itself
	InPath                   // a label of the path
	InQuery                  // a parameter
	InHeader                 // a header
	InHeaders                // all headers with a prefix
	InAttribute              // an attribute of the element that the struct is
	InStatus                 // the HTTP status of an answer
)

// FormName is a member's name in Query, where lists and maps are flattened: Name.1, or Name.1.Key and Name.1.Value.
type FormName struct{ Name, Key, Value string }

// Entry has the names of a map entry's key and value in Query.
func (f FormName) Entry() (key, value string) {
	if f.Key == "" {
		return "key", "value"
	}
	return f.Key, f.Value
}
