package fakecloudshell

import "slices"

// addService is the attempt to take the mutex.
func (w *world) addService(who caller, args arguments) (any, error) {
	values, err := args.pairs("attributes", "AttributeNameValue", "Name")
	if err != nil {
		return nil, invalid(err)
	}
	r, err := w.running(who, args)
	if err != nil {
		return nil, err
	}
	model, known := w.models[args.text("serviceName")]
	switch {
	case !known:
		return nil, &w.failures.UnknownModel
	case model.AdminOnly && w.policy.ProtectAdminModels && !who.user.Admin:
		return nil, &w.failures.NotPermitted
	case args.text("alias") == "":
		return nil, &Failure{CodeGeneral, "A service needs an alias"}
	}
	added := Service{Model: model.Name, Alias: args.text("alias"), Attributes: model.defaults()}
	if err := w.assign(added, model, values); err != nil {
		return nil, err
	}
	if r.find(added.Alias, w.policy) >= 0 {
		return nil, &w.failures.AliasTaken
	}
	r.Services = append(r.Services, added)
	r.changed = w.now()
	return nil, nil
}

func (m Model) defaults() map[string]string {
	values := map[string]string{}
	for _, a := range m.Attributes {
		values[a.Name] = a.Default
	}
	return values
}

// assign sets attributes: all of them, or none.
func (w *world) assign(s Service, model Model, values []pair) error {
	for _, value := range values {
		if err := w.checkValue(model, value); err != nil {
			return err
		}
	}
	for _, value := range values {
		if model.has(value.name) {
			s.Attributes[value.name] = w.policy.stored(value.value)
		}
	}
	return nil
}

func (w *world) checkValue(model Model, value pair) error {
	if !model.has(value.name) && !w.policy.IgnoreUnknownAttributes {
		return &w.failures.UnknownAttribute
	}
	if w.policy.stored(value.value) != value.value && !w.policy.CutValues {
		return &w.failures.LongValue
	}
	return nil
}

// removeServices frees the mutex, whoever has it.
func (w *world) removeServices(who caller, args arguments) (any, error) {
	aliases, err := args.strings("services")
	if err != nil {
		return nil, invalid(err)
	}
	r, err := w.running(who, args)
	if err != nil {
		return nil, err
	}
	missing := slices.ContainsFunc(aliases, func(alias string) bool { return r.find(alias, w.policy) < 0 })
	if missing && w.policy.UnknownAliases == RemoveNone {
		return nil, &w.failures.UnknownAlias
	}
	for _, alias := range aliases {
		if i := r.find(alias, w.policy); i >= 0 {
			r.Services = slices.Delete(r.Services, i, i+1)
			r.changed = w.now()
		}
	}
	if missing && w.policy.UnknownAliases == RemoveRest {
		return nil, &w.failures.UnknownAlias
	}
	return nil, nil
}

// named finds the service that a call is about.
func (w *world) named(who caller, args arguments, parameter string) (*reservation, *Service, error) {
	r, err := w.running(who, args)
	if err != nil {
		return nil, nil, err
	}
	i := r.find(args.text(parameter), w.policy)
	if i < 0 {
		return nil, nil, &w.failures.UnknownAlias
	}
	return r, &r.Services[i], nil
}

func (w *world) setAttributes(who caller, args arguments) (any, error) {
	values, err := args.pairs("attributeRequests", "AttributeNameValue", "Name")
	if err != nil {
		return nil, invalid(err)
	}
	r, s, err := w.named(who, args, "serviceAlias")
	if err != nil {
		return nil, err
	}
	r.changed = w.now()
	return nil, w.assign(*s, w.models[s.Model], values)
}

func (w *world) setLiveStatus(who caller, args arguments) (any, error) {
	r, s, err := w.named(who, args, "serviceAlias")
	if err != nil {
		return nil, err
	}
	s.LiveStatus, s.LiveStatusInfo = args.text("liveStatusName"), args.text("additionalInfo")
	r.changed = w.now()
	return nil, nil
}

// rename changes an alias; serviceName is the one it has.
func (w *world) rename(who caller, args arguments) (any, error) {
	r, s, err := w.named(who, args, "serviceName")
	if err != nil {
		return nil, err
	}
	alias := args.text("newServiceName")
	if alias == "" {
		return nil, &Failure{CodeGeneral, "A service needs an alias"}
	}
	if taken := r.find(alias, w.policy); taken >= 0 && &r.Services[taken] != s {
		return nil, &w.failures.AliasTaken
	}
	s.Alias = alias
	r.changed = w.now()
	return nil, nil
}
