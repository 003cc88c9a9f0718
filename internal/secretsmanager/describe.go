package secretsmanager

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// DescribeSecret tells of a secret, also of one that is to be deleted, but not its value.
func (s *Service) DescribeSecret(
	_ context.Context, in *secretsmanager.DescribeSecretInput,
) (*secretsmanager.DescribeSecretOutput, error) {
	secret, err := s.find(s.store.View(), *in.SecretId)
	if err != nil {
		return nil, err
	}
	return &secretsmanager.DescribeSecretOutput{
		ARN:                &secret.ARN,
		CreatedDate:        &secret.Created,
		DeletedDate:        secret.DeletedAt,
		Description:        optional(secret.Description),
		LastAccessedDate:   secret.Accessed,
		LastChangedDate:    &secret.Changed,
		Name:               &secret.Name,
		Tags:               secret.Tags,
		VersionIdsToStages: byVersion(secret),
	}, nil
}

// byVersion returns the staging labels of each version that has some.
func byVersion(secret *state.Secret) map[string][]string {
	if len(secret.Stages) == 0 {
		return nil
	}
	out := map[string][]string{}
	for _, stage := range slices.Sorted(maps.Keys(secret.Stages)) {
		id := secret.Stages[stage]
		out[id] = append(out[id], stage)
	}
	return out
}

// maxPage is the most results of lists, and the default.
const maxPage = 100

// ListSecrets lists secrets without their values.
func (s *Service) ListSecrets(_ context.Context, in *secretsmanager.ListSecretsInput) (*secretsmanager.ListSecretsOutput, error) {
	key := sortKeys[cmp.Or(in.SortBy, types.SortByTypeCreatedDate)]
	found := s.filtered(in.Filters, aws.ToBool(in.IncludePlannedDeletion))
	list := listing("ListSecrets "+string(in.SortBy)+" "+string(in.SortOrder), maxPage)
	list.Descending = in.SortOrder == types.SortOrderTypeDesc
	slices.SortFunc(found, func(a, b *state.Secret) int {
		if list.Descending {
			a, b = b, a
		}
		return strings.Compare(key(a), key(b))
	})
	page, next, err := account.Sorted(list, found, in.MaxResults, in.NextToken, key)
	if err != nil {
		return nil, err
	}
	out := &secretsmanager.ListSecretsOutput{SecretList: []types.SecretListEntry{}, NextToken: next}
	for _, secret := range page {
		out.SecretList = append(out.SecretList, types.SecretListEntry{
			ARN:                    &secret.ARN,
			CreatedDate:            &secret.Created,
			DeletedDate:            secret.DeletedAt,
			Description:            optional(secret.Description),
			LastAccessedDate:       secret.Accessed,
			LastChangedDate:        &secret.Changed,
			Name:                   &secret.Name,
			SecretVersionsToStages: byVersion(secret),
			Tags:                   secret.Tags,
		})
	}
	return out, nil
}

// sortKeys are what lists can be sorted by. Equal times are sorted by name.
var sortKeys = map[types.SortByType]func(*state.Secret) string{
	types.SortByTypeName:             func(s *state.Secret) string { return s.Name },
	types.SortByTypeCreatedDate:      func(s *state.Secret) string { return timeKey(s.Created, s) },
	types.SortByTypeLastChangedDate:  func(s *state.Secret) string { return timeKey(s.Changed, s) },
	types.SortByTypeLastAccessedDate: func(s *state.Secret) string { return timeKey(aws.ToTime(s.Accessed), s) },
}

func timeKey(t time.Time, s *state.Secret) string {
	return t.UTC().Format("2006-01-02T15:04:05.000") + " " + s.Name
}

// filtered returns the secrets that all filters want. Those that are to be deleted are asked for.
func (s *Service) filtered(filters []types.Filter, deleted bool) (found []*state.Secret) {
	now := s.now()
	for secret := range s.store.View().Secrets.All() {
		unwanted := func(f types.Filter) bool { return !isWanted(secret, f) }
		if !secret.Gone(now) && (deleted || secret.DeletedAt == nil) && !slices.ContainsFunc(filters, unwanted) {
			found = append(found, secret)
		}
	}
	return found
}

// isWanted reports whether any of a filter's values fits a secret. A value that begins with ! fits those that the rest of it doesn't fit.
func isWanted(secret *state.Secret, f types.Filter) bool {
	return slices.ContainsFunc(f.Values, func(value string) bool {
		if rest, negated := strings.CutPrefix(value, "!"); negated {
			return !fits(secret, f.Key, rest)
		}
		return fits(secret, f.Key, value)
	})
}

// fits reports whether a value of a filter fits a secret: API_Filter. Of descriptions, AWS looks at the beginnings of words.
func fits(secret *state.Secret, key types.FilterNameStringType, value string) bool {
	beginsWith := func(attribute string) bool { return strings.HasPrefix(attribute, value) }
	switch key {
	case types.FilterNameStringTypeName:
		return beginsWith(secret.Name)
	case types.FilterNameStringTypeDescription:
		return hasWords(value, secret.Description)
	case types.FilterNameStringTypeTagKey:
		return slices.ContainsFunc(secret.Tags, func(t types.Tag) bool { return beginsWith(aws.ToString(t.Key)) })
	case types.FilterNameStringTypeTagValue:
		return slices.ContainsFunc(secret.Tags, func(t types.Tag) bool { return beginsWith(aws.ToString(t.Value)) })
	case types.FilterNameStringTypeAll:
		attributes := []string{secret.Name, secret.Description}
		for _, t := range secret.Tags {
			attributes = append(attributes, aws.ToString(t.Key), aws.ToString(t.Value))
		}
		return hasWords(value, attributes...)
	}
	return false // no secret has a primary region, which replicas have, or an owning service
}

// hasWords reports whether there's an attribute in which each of the wanted words begins a word, in upper or lower case.
func hasWords(wanted string, attributes ...string) bool {
	all := words(wanted)
	return len(all) > 0 && slices.ContainsFunc(attributes, func(attribute string) bool {
		there := words(attribute)
		return !slices.ContainsFunc(all, func(w string) bool {
			return !slices.ContainsFunc(there, func(t string) bool { return strings.HasPrefix(t, w) })
		})
	})
}

// words splits a text where its letters, capitals or digits begin, so that DatabaseSecret7 has three words, and returns them in small letters:
// "Find secrets in Secrets Manager" in the user guide.
func words(text string) (found []string) {
	var word []rune
	runes := append([]rune(text), 0) // nothing follows the last one
	for i, r := range runes[:len(runes)-1] {
		isWord := unicode.IsLetter(r) || unicode.IsDigit(r)
		if len(word) > 0 && (!isWord || beginsWord(word[len(word)-1], r, runes[i+1])) {
			found = append(found, strings.ToLower(string(word)))
			word = nil
		}
		if isWord {
			word = append(word, r)
		}
	}
	if len(word) > 0 {
		found = append(found, strings.ToLower(string(word)))
	}
	return found
}

// beginsWord reports whether a letter or digit begins a word right behind another one, and before what follows.
func beginsWord(before, r, next rune) bool {
	if unicode.IsDigit(before) != unicode.IsDigit(r) {
		return true
	}
	return unicode.IsUpper(r) && (unicode.IsLower(before) || unicode.IsLower(next))
}

// ListSecretVersionIds lists a secret's versions. Those without staging labels are asked for.
func (s *Service) ListSecretVersionIds(
	_ context.Context, in *secretsmanager.ListSecretVersionIdsInput,
) (*secretsmanager.ListSecretVersionIdsOutput, error) {
	v := s.store.View()
	secret, err := s.find(v, *in.SecretId)
	if err != nil {
		return nil, err
	}
	versions := slices.Collect(v.VersionsOfSecret(secret.Name))
	if !aws.ToBool(in.IncludeDeprecated) {
		versions = slices.DeleteFunc(versions, func(v *state.SecretVersion) bool { return len(stagesOf(secret, v.ID)) == 0 })
	}
	page, next, err := account.Sorted(listing("ListSecretVersionIds "+secret.ARN, maxPage), versions, in.MaxResults, in.NextToken,
		func(v *state.SecretVersion) string { return v.ID })
	if err != nil {
		return nil, err
	}
	out := &secretsmanager.ListSecretVersionIdsOutput{
		ARN:       &secret.ARN,
		Name:      &secret.Name,
		NextToken: next,
		Versions:  []types.SecretVersionsListEntry{},
	}
	for _, version := range page {
		out.Versions = append(out.Versions, types.SecretVersionsListEntry{
			CreatedDate:   &version.Created,
			KmsKeyIds:     []string{"DefaultEncryptionKey"},
			VersionId:     &version.ID,
			VersionStages: stagesOf(secret, version.ID),
		})
	}
	return out, nil
}
