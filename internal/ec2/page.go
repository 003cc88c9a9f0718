package ec2

import (
	"slices"

	"github.com/pintle/pintle/internal/account"
)

// minPage is the smallest MaxResults of most operations that describe something.
const minPage = 5

// fromOne are those that also give a page of one, as their models and documentation say.
var fromOne = []string{
	"DescribeAddressesAttribute", "DescribeLaunchTemplateVersions", "DescribeLaunchTemplates", "DescribeManagedPrefixLists",
	"GetManagedPrefixListEntries",
}

// listing describes the pages of a Describe operation. Without MaxResults there's a single page, with up to most items.
func listing(operation string, most int) account.List {
	least := minPage
	if slices.Contains(fromOne, operation) {
		least = 1
	}
	return account.List{
		Kind:  "ec2:" + operation,
		Least: least,
		Most:  most,
		BadLimit: func(limit int) error {
			if limit < least {
				return refuse("InvalidParameterValue",
					"Value ( %d ) for parameter maxResults is invalid. Expecting a value greater than %d.", limit, least)
			}
			return refuse("InvalidParameterValue",
				"Value ( %d ) for parameter maxResults is invalid. Expecting a value less than %d.", limit, most)
		},
		BadToken: func() error {
			return refuse("InvalidNextToken", "The specified NextToken is not one that this operation returned")
		},
	}
}
