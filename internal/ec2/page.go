package ec2

import "github.com/pintle/pintle/internal/account"

// minPage is the least MaxResults, which EC2 has in common for what describes instances and their types.
const minPage = 5

// listing is the pages of an operation that describes; without MaxResults there is one page of all, up to the most.
func listing(operation string, most int) account.List {
	return account.List{
		Kind:  "ec2:" + operation,
		Least: minPage,
		Most:  most,
		BadLimit: func(limit int) error {
			if limit < minPage {
				return refuse("InvalidParameterValue", "Value ( %d ) for parameter maxResults is invalid. Expecting a value greater than %d.", limit, minPage)
			}
			return refuse("InvalidParameterValue", "Value ( %d ) for parameter maxResults is invalid. Expecting a value less than %d.", limit, most)
		},
		BadToken: func() error {
			return refuse("InvalidNextToken", "The specified NextToken is not one that this operation returned")
		},
	}
}
