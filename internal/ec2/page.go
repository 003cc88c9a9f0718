package ec2

import "github.com/pintle/pintle/internal/account"

// minPage is the smallest MaxResults of every operation that describes instances or their types.
const minPage = 5

// listing describes the pages of a Describe operation. Without MaxResults there's a single page, with up to most items.
func listing(operation string, most int) account.List {
	return account.List{
		Kind:  "ec2:" + operation,
		Least: minPage,
		Most:  most,
		BadLimit: func(limit int) error {
			if limit < minPage {
				return refuse("InvalidParameterValue",
					"Value ( %d ) for parameter maxResults is invalid. Expecting a value greater than %d.", limit, minPage)
			}
			return refuse("InvalidParameterValue",
				"Value ( %d ) for parameter maxResults is invalid. Expecting a value less than %d.", limit, most)
		},
		BadToken: func() error {
			return refuse("InvalidNextToken", "The specified NextToken is not one that this operation returned")
		},
	}
}
