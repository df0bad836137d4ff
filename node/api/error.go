package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
)

// Error is an error with a hint what to do about it. The server writes it as JSON and the client returns it again.
type Error struct {
	Code    int    `json:"-"`              // HTTP status, 0 when no node answered
	Message string `json:"error"`          // what failed and why
	Hint    string `json:"hint,omitempty"` // what to do about it
	cause   error
}

// NewError returns err under an HTTP status code, with a hint that may be empty.
func NewError(code int, err error, hint string) *Error {
	return &Error{Code: code, Message: Words(err), Hint: hint, cause: err}
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the error that NewError was given; it does not travel over HTTP.
func (e *Error) Unwrap() error { return e.cause }

// Words returns the text of an error, with ends of a context in words of a user.
func Words(err error) string {
	return contextWords.Replace(err.Error())
}

var contextWords = strings.NewReplacer(
	context.DeadlineExceeded.Error(), "the time ran out",
	context.Canceled.Error(), "it was ended early",
)

// asError finds the status code for what a Backend returned.
func asError(err error) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return &Error{Code: e.Code, Message: Words(err), Hint: e.Hint, cause: err} // keep what was wrapped around it
	case errors.Is(err, context.DeadlineExceeded):
		return NewError(http.StatusGatewayTimeout, err, "wait longer, or see sparsecast status for what it is waiting for")
	case errors.Is(err, context.Canceled):
		return NewError(http.StatusServiceUnavailable, err, "the request ended early or the node is stopping; try again")
	}
	return NewError(http.StatusInternalServerError, err, "")
}
