package fakecloudshell

import (
	"maps"
	"slices"
	"strings"
)

// details shows a reservation, perhaps as it was a few seconds ago.
func (w *world) details(who caller, args arguments) (any, error) {
	disabled, err := args.flag("disableCache")
	if err != nil {
		return nil, invalid(err)
	}
	r, err := w.reservation(who, args)
	if err != nil {
		return nil, err
	}
	now := w.now()
	useCache := !disabled || w.policy.IgnoreDisableCache
	if useCache && r.cache != nil && w.policy.cached(now.Sub(r.cache.read)) {
		return newDetailsInfo(r.cache, who.dates), nil
	}
	shown := r.snapshot(now)
	if useCache || w.policy.FreshenCache {
		r.cache = shown
	}
	return newDetailsInfo(shown, who.dates), nil
}

func (w *world) status(who caller, args arguments) (any, error) {
	r, err := w.reservation(who, args)
	if err != nil {
		return nil, err
	}
	return newStatusInfo(r, who.dates), nil
}

// services lists models, those for administrators to them only. An empty category
// or name is every one.
func (w *world) services(who caller, args arguments) (any, error) {
	category, name := args.text("categoryName"), args.text("serviceName")
	var found []Model
	for _, key := range slices.Sorted(maps.Keys(w.models)) {
		m := w.models[key]
		visible := !m.AdminOnly || who.user.Admin
		if visible && (category == "" || m.Family == category) && (name == "" || m.Name == name) {
			found = append(found, m)
		}
	}
	return newServicesInfo(found), nil
}

func (w *world) serverTime(who caller, _ arguments) (any, error) {
	return newTimeInfo(w.now(), who.dates), nil
}

// setData sets keys; those that it does not name stay. It is for administrators.
func (w *world) setData(who caller, args arguments) (any, error) {
	values, err := args.pairs("sandboxDataKeyValues", "SandboxDataKeyValue", "Key")
	if err != nil {
		return nil, invalid(err)
	}
	r, err := w.running(who, args)
	if err != nil {
		return nil, err
	}
	if !who.user.Admin {
		return nil, &w.failures.NotPermitted
	}
	for _, value := range values {
		r.data[value.name] = value.value
	}
	return nil, nil
}

func (w *world) data(who caller, args arguments) (any, error) {
	r, err := w.reservation(who, args)
	if err != nil {
		return nil, err
	}
	return newDataInfo(r.data), nil
}

// layout turns a date pattern of .NET into one of package time.
func layout(pattern string) string {
	return strings.NewReplacer("yyyy", "2006", "MM", "01", "dd", "02", "HH", "15", "mm", "04", "ss", "05").Replace(pattern)
}
