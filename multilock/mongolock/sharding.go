package mongolock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/multilock/go/multilock/source"
)

// An index that expires documents removes locks from the collection, and sharding by another key
// than _id allows two documents with one name. Neither is checked before a lock is acquired, only
// by Examine.

// indexes lists the indexes of the locks' collection.
func (s *Source) indexes(ctx context.Context) (specs []mongo.IndexSpecification, err error) {
	err = s.repeat(ctx, s.timeout, func(ctx context.Context) (err error) {
		specs, err = s.collection(locksSuffix).Indexes().ListSpecifications(ctx)
		return err
	})
	return specs, err
}

// findExpiry looks for an index by which the server removes old documents.
func findExpiry(specs []mongo.IndexSpecification, err error) source.Finding {
	const subject = "TTL index"
	if err != nil {
		return source.Warning(subject, "the indexes cannot be listed: "+err.Error(), "check as an administrator that none of them has expireAfterSeconds")
	}
	found := source.Fine(subject, "none: nothing removes locks and results but their users")
	for _, i := range specs {
		if i.ExpireAfterSeconds == nil {
			continue
		}
		text := fmt.Sprintf("the index %q removes documents %d s after the time in %s: ", i.Name, *i.ExpireAfterSeconds, fields(i.KeysDocument))
		advice := fmt.Sprintf("drop it: dropIndex(%q)", i.Name)
		if touchesLock(i.KeysDocument) {
			return source.Unusable(subject, text+"also those of locks that are held", advice)
		}
		found = source.Warning(subject, text+"results and fencing tokens would be lost with them", advice)
	}
	return found
}

// fields returns the names of the fields of an index or a shard key.
func fields(key bson.Raw) string {
	elements, _ := key.Elements()
	names := make([]string, len(elements))
	for i, e := range elements {
		names[i] = e.Key()
	}
	return strings.Join(names, ", ")
}

// touchesLock reports whether a key contains a time of held locks.
func touchesLock(key bson.Raw) bool {
	return slices.ContainsFunc([]string{acquiredField, seenField}, func(name string) bool {
		_, err := key.LookupErr(name)
		return err == nil
	})
}

// shardKey returns the collection's shard key, nil if it is not sharded.
func (s *Source) shardKey(ctx context.Context) (bson.Raw, error) {
	var entry struct {
		Key     bson.Raw `bson:"key"`
		Dropped bool     `bson:"dropped"`
	}
	err := s.repeat(ctx, s.timeout, func(ctx context.Context) error {
		namespace := s.database.Name() + "." + s.name
		return s.database.Client().Database("config").Collection("collections").FindOne(ctx, bson.D{{Key: idField, Value: namespace}}).Decode(&entry)
	})
	if errors.Is(err, mongo.ErrNoDocuments) || entry.Dropped {
		return nil, nil //nolint:nilnil // not sharded
	}
	return entry.Key, err
}

// findSharding checks the shard key.
func findSharding(key bson.Raw, err error) source.Finding {
	const subject = "shard key"
	switch {
	case err != nil:
		return source.Warning(subject, "the collection's shard key cannot be read: "+err.Error(),
			"have an administrator look that it is _id: with another one a name can have two locks")
	case key == nil:
		return source.Fine(subject, "the collection is not sharded")
	case fields(key) == idField:
		return source.Fine(subject, "the collection is sharded by _id")
	}
	return source.Unusable(subject, fmt.Sprintf("the collection is sharded by %s: a name can have a document, and a holder, on each shard", fields(key)),
		"use a collection that is not sharded, or sharded by _id")
}
