"""A small invented world that refdesk can be tried and tested on without a network or an account.

Nothing in it happened: the announcements, their dates and their people are made up. Only the names of products,
categories and tags are those of the real service, so that filters look like the ones a person would use.
"""
