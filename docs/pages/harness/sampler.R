# SGLD in R behind the protocol of lines, without any package: x' = x - h grad U(x) + sqrt(2 h) N(0, I).

input <- file("stdin", "r")
numbers <- function(line) as.numeric(strsplit(sub(".*\\[(.*)\\].*", "\\1", line), ",")[[1]])
field <- function(line, name) as.numeric(sub(paste0('.*"', name, '": ([-+.0-9eE]+).*'), "\\1", line))
say <- function(...) { cat(..., "\n", sep = ""); flush(stdout()) }
list_of <- function(x) paste0("[", paste(sprintf("%.17g", x), collapse = ", "), "]")
ask <- function(...) { say(...); numbers(readLines(input, 1)) }

step <- function(x, h) {
  gradient <- ask('{"ask": "gradient", "x": ', list_of(x), "}")
  x - h * gradient + sqrt(2 * h) * ask('{"ask": "normal", "n": ', length(x), "}")
}

while (length(line <- readLines(input, 1)) > 0) {
  if (grepl('"describe"', line)) say('{"protocol": 1, "draws": "given"}')
  else if (grepl('"init"', line)) say('{"z": ', list_of(numbers(line)), "}")
  else if (grepl('"step"', line)) say('{"z": ', list_of(step(numbers(line), field(line, "h"))), "}")
  else break
}
