# summary
