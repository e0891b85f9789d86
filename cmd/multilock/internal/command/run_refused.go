package command

import (
	"context"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// refusalMemory is how far back refusals are counted.
const refusalMemory = 90 * 24 * time.Hour

// countRefusal writes a refusal into the history, and returns how many times in a
// row this host has met the same holder. Between healthy runs the holder
// changes; one that stays hangs.
func countRefusal(ctx context.Context, src *place.Source, held *multilock.HeldError, o *runOptions) (int, error) {
	self := src.Self
	event := source.Event{
		Time: time.Now(), What: source.EventRefused, Name: o.Name, Token: held.Sighting.Record.Token, By: self,
		User: o.User, Command: console.CommandLine(o.command), Holder: &held.Sighting.Record.Holder, Why: held.Sighting.Why,
	}
	journal, err := place.Ability[source.Journal](src, "run: --fail-after", source.TraitHistory)
	if err != nil {
		return 1, err
	}
	if err := journal.Record(ctx, []source.Event{event}); err != nil {
		return 1, err
	}
	events, err := journal.History(ctx, time.Now().Add(-refusalMemory))
	if err != nil {
		return 1, err
	}
	count := 0
	for _, past := range events {
		switch {
		case past.Name != o.Name:
		case past.What != source.EventRefused:
			count = 0
		case past.By.Host == self.Host && past.Token == event.Token:
			count++
		case past.By.Host == self.Host:
			count = 0
		}
	}
	return max(count, 1), nil
}
