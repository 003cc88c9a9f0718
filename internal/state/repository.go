package state

import (
	"iter"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ecr/types"

	"github.com/pintle/pintle/internal/store"
)

// Repository is a repository of Amazon ECR.
type Repository struct {
	Name       string
	Created    time.Time
	Mutability types.ImageTagMutability
	// Exclusions are the tags to which the opposite of Mutability applies.
	Exclusions []types.ImageTagMutabilityExclusionFilter `json:",omitempty"`
	ScanOnPush bool                                      `json:",omitempty"`
	Tags       []types.Tag                               `json:",omitempty"`
	Policy     string                                    `json:",omitempty"` // says who may do what with it
	Lifecycle  string                                    `json:",omitempty"` // the policy that expires images
	// Evaluated is when the lifecycle policy was last evaluated, or nil for never.
	Evaluated *time.Time `json:",omitzero"`
}

// Image is an image of a repository: a manifest, or a list of them.
type Image struct {
	Repository string
	Digest     string
	MediaType  string // of the manifest
	Artifact   string `json:",omitempty"` // what it is: the media type of the configuration, or the manifest's artifactType
	Size       int64  // of the manifest and, but for lists, of all that it refers to, in bytes
	Pushed     time.Time
	// Pulled is when it was last pulled, to the day, or nil for never.
	Pulled  *time.Time `json:",omitzero"`
	Layers  []string   `json:",omitempty"` // the digests of its layers and of its configuration
	Images  []string   `json:",omitempty"` // those of a list
	Subject string     `json:",omitempty"` // the digest of the image that it is about
	// About are the annotations, which listings of what is about an image have.
	About map[string]string `json:",omitempty"`
	Bytes int64             // of the manifest
}

// Key returns the repository and the digest.
func (i *Image) Key() string { return InRepository(i.Repository, i.Digest) }

// IsList reports whether the image is a list of images.
func (i *Image) IsList() bool { return len(i.Images) > 0 }

// ImageTag is a tag of a repository's image.
type ImageTag struct {
	Repository string
	Tag        string
	Digest     string
	// Checked is when another registry was last asked which image has the tag, for one that comes from there; nil for others.
	Checked *time.Time `json:",omitzero"`
}

// Key returns the repository and the tag.
func (t *ImageTag) Key() string { return InRepository(t.Repository, t.Tag) }

// ImageLayer is a blob that a repository has, so that images can refer to it.
type ImageLayer struct {
	Repository string
	Digest     string
	Size       int64
	// Until is how long it stays without an image that refers to it. It's nil while one does.
	Until *time.Time `json:",omitzero"`
}

// Key returns the repository and the digest.
func (l *ImageLayer) Key() string { return InRepository(l.Repository, l.Digest) }

// Over reports whether the layer's time without an image is over.
func (l *ImageLayer) Over(now time.Time) bool { return l.Until != nil && !l.Until.After(now) }

// PullThroughRule has the images of repositories whose names begin with a prefix come from another registry.
type PullThroughRule struct {
	Prefix         string // without a / at its end, or "ROOT" for all repositories that no other rule is for
	Registry       types.UpstreamRegistry
	URL            string // the other registry's host
	UpstreamPrefix string // what stands there in place of the prefix; "ROOT" or "" for nothing, as the rule was made
	Credential     string `json:",omitempty"` // the ARN of a secret
	Created        time.Time
	Updated        time.Time
}

// RootPrefix is the prefix of a rule that stands for none.
const RootPrefix = "ROOT"

// Upstream returns the name in the other registry of a repository that the rule is for.
func (r *PullThroughRule) Upstream(repository string) string {
	name := repository
	if r.Prefix != RootPrefix {
		name = strings.TrimPrefix(name, r.Prefix+"/")
	}
	if r.UpstreamPrefix != RootPrefix && r.UpstreamPrefix != "" {
		name = r.UpstreamPrefix + "/" + name
	}
	return name
}

// RuleFor returns the rule for a repository: that with the longest prefix. It returns nil if there is none.
func (v *View) RuleFor(repository string) *PullThroughRule {
	for prefix := repository; ; {
		cut := strings.LastIndexByte(prefix, '/')
		if cut < 0 {
			return v.PullThroughRules.Get(RootPrefix)
		}
		prefix = prefix[:cut]
		if r := v.PullThroughRules.Get(prefix); r != nil {
			return r
		}
	}
}

// InRepository returns the key of what a repository has. Names have no spaces.
func InRepository(repository, name string) string { return repository + " " + name }

// ofRepository returns a table's rows of one repository.
func ofRepository[R interface{ Key() string }](t Table[R], repository string) iter.Seq[R] {
	return func(yield func(R) bool) {
		prefix := InRepository(repository, "")
		for row := range t.Behind(prefix) {
			if !strings.HasPrefix(row.Key(), prefix) || !yield(row) {
				return
			}
		}
	}
}

// ImagesOf returns a repository's images, by digest.
func (v *View) ImagesOf(repository string) iter.Seq[*Image] {
	return ofRepository(v.Images, repository)
}

// ImageTagsOf returns a repository's tags.
func (v *View) ImageTagsOf(repository string) iter.Seq[*ImageTag] {
	return ofRepository(v.ImageTags, repository)
}

// ImageLayersOf returns a repository's layers, by digest.
func (v *View) ImageLayersOf(repository string) iter.Seq[*ImageLayer] {
	return ofRepository(v.ImageLayers, repository)
}

// TagsOf returns an image's tags.
func (v *View) TagsOf(i *Image) (tags []string) {
	for t := range v.ImageTags.By(imageTagsByImage, i.Key()) {
		tags = append(tags, t.Tag)
	}
	return tags
}

// HasBlob reports whether any repository has a blob, as a layer or as a manifest.
func (v *View) HasBlob(digest string) bool {
	for range v.ImageLayers.By(imageLayersByDigest, digest) {
		return true
	}
	for range v.Images.By(imagesByDigest, digest) {
		return true
	}
	return false
}

// PutImage puts an image, whose layers stay from now on.
func (tx *Tx) PutImage(i *Image) {
	tx.Images.Put(i)
	for _, digest := range i.Layers {
		tx.keepLayer(InRepository(i.Repository, digest), nil)
	}
}

// keepLayer says until when a layer stays.
func (tx *Tx) keepLayer(key string, until *time.Time) {
	if old := tx.ImageLayers.Get(key); old != nil && (old.Until != nil || until != nil) {
		layer := *old
		layer.Until = until
		tx.ImageLayers.Put(&layer)
	}
}

// SweepImageLayers deletes a repository's layers whose time is over, unless an image refers to them.
func (tx *Tx) SweepImageLayers(repository string, now time.Time) {
	used := map[string]bool{}
	for i := range tx.ImagesOf(repository) {
		for _, digest := range i.Layers {
			used[digest] = true
		}
	}
	for l := range tx.ImageLayersOf(repository) {
		switch {
		case !l.Over(now):
		case used[l.Digest]:
			tx.keepLayer(l.Key(), nil)
		default:
			tx.ImageLayers.Delete(l.Key())
		}
	}
}

// DeleteImage deletes an image with its tags. Its layers stay as long as other images refer to them, and else until a time.
func (tx *Tx) DeleteImage(i *Image, until time.Time) {
	for _, tag := range tx.TagsOf(i) {
		tx.ImageTags.Delete(InRepository(i.Repository, tag))
	}
	for _, digest := range i.Layers {
		tx.keepLayer(InRepository(i.Repository, digest), &until)
	}
	tx.Images.Delete(i.Key())
}

// DeleteRepository deletes a repository with all that it has.
func (tx *Tx) DeleteRepository(name string) {
	tx.Repositories.Delete(name)
	for t := range tx.ImageTagsOf(name) {
		tx.ImageTags.Delete(t.Key())
	}
	for i := range tx.ImagesOf(name) {
		tx.Images.Delete(i.Key())
	}
	for l := range tx.ImageLayersOf(name) {
		tx.ImageLayers.Delete(l.Key())
	}
}

var (
	imageLayersByDigest = Index[*ImageLayer]{Name: "digest", Value: func(l *ImageLayer) string { return l.Digest }}
	imagesByDigest      = Index[*Image]{Name: "digest", Value: func(i *Image) string { return i.Digest }}
	imageTagsByImage    = Index[*ImageTag]{Name: "image", Value: func(t *ImageTag) string { return InRepository(t.Repository, t.Digest) }}
	// ImagesBySubject finds what is about an image of a repository.
	ImagesBySubject = Index[*Image]{Name: "subject", Value: func(i *Image) string {
		if i.Subject == "" {
			return ""
		}
		return InRepository(i.Repository, i.Subject)
	}}
)

var (
	repositories = &store.Definition[*Repository]{
		Name: "repositories",
		Key:  func(r *Repository) string { return r.Name },
	}

	images = &store.Definition[*Image]{
		Name:    "images",
		Key:     (*Image).Key,
		Indexes: []Index[*Image]{imagesByDigest, ImagesBySubject},
	}

	imageTags = &store.Definition[*ImageTag]{
		Name:    "image_tags",
		Key:     (*ImageTag).Key,
		Indexes: []Index[*ImageTag]{imageTagsByImage},
	}

	imageLayers = &store.Definition[*ImageLayer]{
		Name:    "image_layers",
		Key:     (*ImageLayer).Key,
		Indexes: []Index[*ImageLayer]{imageLayersByDigest},
	}
)

var pullThroughRules = &store.Definition[*PullThroughRule]{
	Name: "pull_through_rules",
	Key:  func(r *PullThroughRule) string { return r.Prefix },
}

// imageTables are the tables of Amazon ECR.
type imageTables struct {
	ImageLayers      Table[*ImageLayer]
	ImageTags        Table[*ImageTag]
	Images           Table[*Image]
	PullThroughRules Table[*PullThroughRule]
	Repositories     Table[*Repository]
}

// newImageTables binds the tables to a view.
func newImageTables(v *store.View) imageTables {
	return imageTables{
		ImageLayers:      imageLayers.In(v),
		ImageTags:        imageTags.In(v),
		Images:           images.In(v),
		PullThroughRules: pullThroughRules.In(v),
		Repositories:     repositories.In(v),
	}
}
