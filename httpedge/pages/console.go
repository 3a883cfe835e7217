package pages

import (
	"html/template"

	"gatehouse/actors/texts"
)

// Console is what the three screens of the console share. Its forms go to the screen that they stand
// on, with FormToken and do: what to do.
type Console struct {
	At        string // the screen: apps, people or activity
	FormToken string
	Confirm   string     // path at which a factor is used, before anything can be changed; "" = none is needed
	Notice    texts.Text // something that has gone well; nil = nothing
	Problems  Problems
	// First and Next are the paths of the first and of the next page of a list; "" = none.
	First, Next string
}

// Fact is what a screen says of an app or a person.
type Fact struct {
	Label  texts.Text
	Text   texts.Text
	Values []string // in place of Text
}

// Action is a button for what can be done.
type Action struct {
	Do     string     // value of the field do
	Text   texts.Text // how it is now
	Label  texts.Text // of the button
	Of     string     // what the button is for, if several have the same label; "" = nothing
	Danger bool
}

// AppField is a field of a form, made by Problems.Line or Problems.Lines.
type AppField struct {
	Name        string // one of ours, never from outside
	Label, Hint texts.Text
	Text        string // as it was entered, or as it is
	Lines       bool   // it has several lines
	Problem     *Problem
	Marks       template.HTMLAttr // that tie it to what is said about it
}

// Line returns a field with one line.
func (p Problems) Line(name string, label, hint texts.Text, text string) AppField {
	f := AppField{Name: name, Label: label, Hint: hint, Text: text, Problem: p.At(name)}
	if f.Marks = p.Mark(name); hint != nil {
		f.Marks = p.Mark(name, name+"-hint")
	}
	return f
}

// Lines returns a field with several lines.
func (p Problems) Lines(name string, label, hint texts.Text, text string) AppField {
	f := p.Line(name, label, hint, text)
	f.Lines = true
	return f
}

// Flag is a box to tick.
type Flag struct {
	Name  string
	Label texts.Text
	On    bool
}

// AppForm registers or changes an app, or invites a person.
type AppForm struct {
	Action, FormToken string
	Do                string
	Button            texts.Text
	Texts             []AppField
	Flags             []Flag
}

// ConsoleApps is the screen of apps: a list with a search, or one app, or the form of a new one.
type ConsoleApps struct {
	Console
	Query   string // what was searched; "" = all apps are listed
	Cut     bool   // the search took too long for all apps
	Apps    []ConsoleRow
	Recipes []ConsoleRow // Name "" is a program without a recipe
	App     *ConsoleApp
	New     *AppForm
	Recipe  string // that New is filled from; "" = none
	Secret  string // of a client, shown this once; "" = none
}

// ConsoleRow is a row that leads to something.
type ConsoleRow struct {
	Path, Name, ID string
	Tags           []texts.Text
	Addresses      []string
}

// ConsoleApp is one app.
type ConsoleApp struct {
	Path, Name, ID string
	ReadOnly       texts.Text // why the console cannot change it; nil = it can
	Facts          []Fact
	Actions        []Action
	Form           *AppForm // nil = it cannot be changed
}

// Render returns the page.
func (p ConsoleApps) Render(v *View) ([]byte, error) { return v.render(consoleApps, p) }

// ConsolePeople is the screen of people: a search, or one person.
type ConsolePeople struct {
	Console
	Query  string // what was searched; "" = nothing yet
	Cut    bool   // the search took too long for all people
	People []ConsoleRow
	More   bool // others were found as well
	Person *ConsolePerson
	Invite *AppForm // invites somebody; nil = nobody can be invited
}

// ConsoleGroup is a group of a person.
type ConsoleGroup struct {
	Name   string
	Issuer string // of the provider that gives it; "" = operators do
}

// ConsolePerson is one person.
type ConsolePerson struct {
	Path, Name string
	ID         int64
	Operator   bool // a member of the operators' group, whom the console does not change
	Facts      []Fact
	Actions    []Action
	Groups     []ConsoleGroup
	Group      string // as it was entered
	AllGroups  []string
	Sessions   []Session
}

// Render returns the page.
func (p ConsolePeople) Render(v *View) ([]byte, error) { return v.render(consolePeople, p) }

// ConsoleActivity is the screen of what happens: how the service is, and the audit trail.
type ConsoleActivity struct {
	Console
	Health  []Health
	Filter  ActivityFilter
	Actions []string // that can be selected
	Events  []ActivityEvent
}

// Health is how a part of the service is.
type Health struct {
	Label texts.Text
	Lines []texts.Text
}

// ActivityFilter selects events, as it was entered.
type ActivityFilter struct{ Action, Since, User, Client string }

// ActivityEvent is a row of the audit trail.
type ActivityEvent struct {
	HistoryEvent
	Action   string
	Who, App string // paths of the person and the app that it is about; "" = none
}

// Render returns the page.
func (p ConsoleActivity) Render(v *View) ([]byte, error) { return v.render(consoleActivity, p) }
