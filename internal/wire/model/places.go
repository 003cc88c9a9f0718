package model

// Route is how requests for an operation look in REST: its method, a path of labels in braces, and what
// else has to be there.
type Route struct {
	Operation, Method, Path string
	Query                   []string // parameters that have to be there, some with a value
	Headers                 []string // that have to be there
	Status                  int      // of the answer
}

// Place is where a member is in HTTP.
type Place struct {
	In   place
	Name string
	Item string // the name of a list's elements, inside an element of its own; flattened where it is ""
}

// place is a part of an HTTP request or answer.
type place uint8

const (
	InBody      place = iota // an element of the body's XML
	InPayload                // the body itself
	InPath                   // a label of the path
	InQuery                  // a parameter
	InHeader                 // a header
	InHeaders                // all headers with a prefix
	InAttribute              // an attribute of the element that the struct is
)

// FormName is what Query calls a member. It has lists and maps flat then: Name.1, or Name.1.Key and Name.1.Value.
type FormName struct{ Name, Key, Value string }

// Entry is what Query calls the key and the value of a map's entry.
func (f FormName) Entry() (key, value string) {
	if f.Key == "" {
		return "key", "value"
	}
	return f.Key, f.Value
}
