package console

import (
	"errors"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
)

const (
	listed = 25 // rows of a list

	paramID     = "id"
	paramQuery  = "q"
	paramAfter  = "after"
	paramRecipe = "recipe"

	anyProgram = "-" // recipe of a program that has none
)

// What the forms of this screen do.
const (
	doCreate    = "create"
	doChange    = "change"
	doApprove   = "approve"
	doUnapprove = "unapprove"
	doVerify    = "verify"
	doUnverify  = "unverify"
	doDisable   = "disable"
	doEnable    = "enable"
	doSecret    = "secret"
	doEndSecret = "end-secret" // with a colon and the id of the secret
)

// apps shows the screen of apps, or does what a form of it says.
func (s *service) apps(o *operator) {
	id := o.param(paramID)
	switch {
	case !o.HTTP.IsPost() && id == "":
		s.listApps(o)
	case !o.HTTP.IsPost():
		s.showApp(o, id)
	case o.Field(fieldDo) == doCreate:
		s.createApp(o)
	default:
		s.changeApp(o, id)
	}
}

// pathOfApp returns the path of an app on this screen.
func pathOfApp(id string) string {
	return pages.PathConsoleApps + "?" + url.Values{paramID: {id}}.Encode()
}

// listApps shows apps, or the form of a new one.
func (s *service) listApps(o *operator) {
	p := pages.ConsoleApps{Console: s.screen(o, "apps")}
	if name := o.param(paramRecipe); name == anyProgram || recipeOf(name) != nil {
		s.showNew(o, p, name)
		return
	}
	p.Query = strings.TrimSpace(o.param(paramQuery))
	var found []*oauth.Client
	isAll, err := true, error(nil)
	if p.Query != "" {
		found, isAll, err = s.tokens.FindClients(o.Ctx, p.Query, listed)
		p.Cut = !isAll || len(found) == listed
	} else {
		after := o.param(paramAfter)
		found, err = s.tokens.Clients(o.Ctx, after, listed)
		if len(found) == listed {
			p.Next = pages.PathConsoleApps + "?" + url.Values{paramAfter: {found[listed-1].ID}}.Encode()
		}
		if after != "" {
			p.First = pages.PathConsoleApps
		}
	}
	if err != nil {
		s.WriteFailure(o.HTTP, "read clients", err)
		return
	}
	for _, c := range found {
		p.Apps = append(p.Apps, pages.ConsoleRow{Path: pathOfApp(c.ID), Name: c.Name, ID: c.ID,
			Tags: tagsOfApp(c)})
	}
	for _, r := range recipes {
		p.Recipes = append(p.Recipes, pages.ConsoleRow{Path: pathOfRecipe(r.name), Name: r.name})
	}
	p.Recipes = append(p.Recipes, pages.ConsoleRow{Path: pathOfRecipe(anyProgram)})
	s.WritePage(o.HTTP, fasthttp.StatusOK, p)
}

func pathOfRecipe(name string) string {
	return pages.PathConsoleApps + "?" + url.Values{paramRecipe: {name}}.Encode()
}

// showNew shows the form of a new app, filled from a recipe, or as it was entered.
func (s *service) showNew(o *operator, p pages.ConsoleApps, name string) {
	c := oauth.Client{Scopes: oauth.OpenID | oauth.Email, Grants: codeAndRefresh}
	if r := recipeOf(name); r != nil {
		c, p.Recipe = r.client, r.name
	}
	fields := o.left.Fields
	if fields == nil {
		fields = fieldsOf(&c)
	}
	p.New = o.appForm(pathOfRecipe(name), doCreate, fields, p.Problems, p.FormToken)
	s.WritePage(o.HTTP, fasthttp.StatusOK, p)
}

// tagsOfApp says what is special about a client.
func tagsOfApp(c *oauth.Client) (tags []texts.Text) {
	for _, tag := range []struct {
		is  bool
		key string
	}{
		{c.Disabled, "disabled"}, {c.Options.Declared, "declared"}, {c.Operator, "operator_app"},
		{c.IsUnverified(), "unverified"}, {c.DetailApproved, "approved"},
	} {
		if tag.is {
			tags = append(tags, texts.Of("console.tag_"+tag.key))
		}
	}
	return tags
}

// isPrivileged reports whether a client has rights that the console does not give: it may change such
// a client in nothing but that it is disabled.
func isPrivileged(c *oauth.Client) bool {
	return c.Operator || c.IntrospectAny || c.Options.FirstParty || c.Options.Federated.IsSet() ||
		len(c.Options.Exchange) > 0
}

// whyReadOnly returns why the console does not change the registration of a client; nil = it does.
func whyReadOnly(c *oauth.Client) texts.Text {
	switch {
	case c.Options.Declared:
		return texts.Of("console.declared")
	case c.Operator:
		return texts.Of("console.operator_app")
	case isPrivileged(c):
		return texts.Of("console.privileged")
	case c.Options.MetadataURL != "":
		return texts.Of("console.described")
	}
	return nil
}

// showApp shows one app.
func (s *service) showApp(o *operator, id string) {
	c, ok := s.app(o, id)
	if !ok {
		return
	}
	p := pages.ConsoleApps{Console: s.screen(o, "apps"), Secret: o.left.Secret}
	a := &pages.ConsoleApp{Path: pathOfApp(c.ID), Name: c.Name, ID: c.ID, ReadOnly: whyReadOnly(c),
		Facts: s.factsOfApp(o, c), Actions: actionsOfApp(c)}
	if a.ReadOnly == nil {
		fields := o.left.Fields
		if fields == nil {
			fields = fieldsOf(c)
		}
		a.Form = o.appForm(a.Path, doChange, fields, p.Problems, p.FormToken)
	}
	p.App = a
	s.WritePage(o.HTTP, fasthttp.StatusOK, p)
}

// app returns the client with that id. Without one it responds, and returns false.
func (s *service) app(o *operator, id string) (*oauth.Client, bool) {
	c, err := s.tokens.Client(o.Ctx, id)
	switch {
	case errors.Is(err, oauth.ErrNotFound) || !oauth.IsClientID(id):
		s.missing(o, "console.unknown_app", pages.PathConsoleApps)
		return nil, false
	case err != nil:
		s.WriteFailure(o.HTTP, "read a client", err)
		return nil, false
	}
	return c, true
}

// factsOfApp says what is registered of a client, and how it is used.
func (s *service) factsOfApp(o *operator, c *oauth.Client) (all []pages.Fact) {
	add := func(key string, values ...string) {
		if len(values) > 0 && values[0] != "" {
			all = append(all, pages.Fact{Label: texts.Of(key), Values: values})
		}
	}
	add("console.client_id", c.ID)
	add("console.issuer", s.tokens.Issuer())
	if whyReadOnly(c) != nil {
		fields := fieldsOf(c)
		for _, f := range appTexts {
			add("console.field_"+f.name, linesOf(fields[f.name])...)
		}
	}
	kind := "console.confidential"
	if c.Public {
		kind = "console.public"
	}
	tags := []texts.Text{texts.Of(kind)}
	if c.IntrospectAny {
		tags = append(tags, texts.Of("console.introspects"))
	}
	if c.Options.FirstParty {
		tags = append(tags, texts.Of("console.first_party"))
	}
	if c.Options.Federated.IsSet() {
		tags = append(tags, texts.Of("console.federated"))
	}
	if len(c.Options.Exchange) > 0 {
		tags = append(tags, texts.Of("console.exchanges"))
	}
	all = append(all, pages.Fact{Label: texts.Of("console.kind"), Text: texts.List(tags)},
		pages.Fact{Label: texts.Of("console.created"), Text: texts.Day(c.Created)})
	if used := s.tokens.ClientUsage(c.ID); !used.LastFailure.IsZero() {
		all = append(all, pages.Fact{Label: texts.Of("console.failures"),
			Text: texts.Of("console.failed_last", "n", int(used.Failures), "code", string(used.LastCode),
				"ago", texts.Ago(used.LastFailure, o.Now))})
	}
	return all
}

// actionsOfApp returns what can be done with a client.
func actionsOfApp(c *oauth.Client) (all []pages.Action) {
	if c.Options.Declared || c.Operator {
		return nil
	}
	// either adds the button for one of two states.
	either := func(is bool, on, off string, danger bool) {
		do, state := on, "console.not_"+on
		if is {
			do, state = off, "console.is_"+on
		}
		all = append(all, pages.Action{Do: do, Text: texts.Of(state),
			Label: texts.Of("console.do_" + do), Danger: danger && !is})
	}
	if isPrivileged(c) {
		if !c.Disabled {
			either(false, doDisable, doEnable, true)
		}
		return all
	}
	either(c.DetailApproved, doApprove, doUnapprove, false)
	if c.Options.SelfRegistered {
		either(c.Options.Verified, doVerify, doUnverify, false)
	}
	if !c.Public && !c.HasKeys() {
		for _, secret := range c.Secrets {
			if len(c.Secrets) > 1 {
				all = append(all, pages.Action{Do: doEndSecret + ":" + secret.ID, Of: secret.ID,
					Text: texts.Of("console.secret_since", "id", secret.ID,
						"day", texts.Day(secret.Created)), Label: texts.Of("console.end_secret"), Danger: true})
			}
		}
		if len(c.Secrets) < oauth.MostSecrets {
			all = append(all, pages.Action{Do: doSecret, Text: texts.Of("console.secret_lead"),
				Label: texts.Of("console.do_secret")})
		}
	}
	either(c.Disabled, doDisable, doEnable, true)
	return all
}

// createApp registers the app of the form.
func (s *service) createApp(o *operator) {
	name := o.param(paramRecipe)
	if recipeOf(name) == nil {
		name = anyProgram
	}
	fields := o.entered(nil)
	c := oauth.Client{Public: fields[fieldPublic] == "true"}
	problems := apply(fields, &c)
	var created *oauth.Client
	var secret string
	if problems == nil {
		var err error
		created, secret, err = s.tokens.CreateClient(o.Ctx, c, o.Now)
		if problems = wrongWith(err); problems == nil && err != nil {
			s.WriteFailure(o.HTTP, "create a client", err)
			return
		}
	}
	if problems != nil {
		s.leave(o, pathOfRecipe(name), flash{Wrong: problems, Fields: fields})
		return
	}
	s.leave(o, pathOfApp(created.ID), flash{Notice: "console.app_created", Secret: secret})
}

// errForbidden is the error of a change that the console does not make.
var errForbidden = errors.New("the console does not change this")

// changesOfApp are the actions that change a member of a client.
var changesOfApp = map[string]func(*oauth.Client){
	doApprove:   func(c *oauth.Client) { c.DetailApproved = true },
	doUnapprove: func(c *oauth.Client) { c.DetailApproved = false },
	doVerify:    func(c *oauth.Client) { c.Options.Verified = c.Options.SelfRegistered },
	doUnverify:  func(c *oauth.Client) { c.Options.Verified = false },
	doDisable:   func(c *oauth.Client) { c.Disabled = true },
	doEnable:    func(c *oauth.Client) { c.Disabled = false },
}

// changeApp does what a form says with an app.
func (s *service) changeApp(o *operator, id string) {
	c, ok := s.app(o, id)
	if !ok {
		return
	}
	do, secretID, _ := strings.Cut(o.Field(fieldDo), ":")
	left := flash{Notice: "console.app_changed"}
	var err error
	switch change := changesOfApp[do]; {
	case change != nil:
		_, err = s.tokens.UpdateClient(o.Ctx, id, func(c *oauth.Client) error {
			if c.Operator || isPrivileged(c) && do != doDisable {
				return errForbidden
			}
			change(c)
			return nil
		})
	case do == doChange:
		left, err = s.replaceApp(o, c)
	case isPrivileged(c):
		err = errForbidden
	case do == doSecret:
		left.Notice = "console.secret_made"
		left.Secret, _, err = s.tokens.RotateSecret(o.Ctx, id, o.Now)
	case do == doEndSecret:
		err = s.tokens.RevokeSecret(o.Ctx, id, secretID)
	default:
		s.RefusePage(o.Visit, texts.Of("message.form_unread"), texts.Of("message.send_again"))
		return
	}
	if problems := wrongWith(err); problems != nil {
		left, err = flash{Wrong: problems}, nil
	}
	switch {
	case errors.Is(err, oauth.ErrDeclared):
		s.forbid(o, texts.Of("console.declared"), pathOfApp(id))
	case errors.Is(err, errForbidden):
		s.forbid(o, texts.Of("console.privileged"), pathOfApp(id))
	case errors.Is(err, oauth.ErrNotFound):
		s.missing(o, "console.unknown_app", pages.PathConsoleApps)
	case err != nil:
		s.WriteFailure(o.HTTP, "change a client", err)
	default:
		s.leave(o, pathOfApp(id), left)
	}
}

// replaceApp replaces the registration of a client by what the form says.
func (s *service) replaceApp(o *operator, c *oauth.Client) (left flash, err error) {
	fields := o.entered(fieldsOf(c))
	var problems []wrong
	_, err = s.tokens.UpdateClient(o.Ctx, c.ID, func(c *oauth.Client) error {
		if whyReadOnly(c) != nil {
			return errForbidden
		}
		if problems = apply(fields, c); problems != nil {
			return errWrong
		}
		return nil
	})
	if err != nil && problems == nil {
		problems = wrongWith(err)
	}
	if problems != nil {
		return flash{Wrong: problems, Fields: fields}, nil
	}
	return flash{Notice: "console.app_changed"}, err
}

// errWrong ends a change whose form has to be corrected.
var errWrong = errors.New("the form has to be corrected")
