target triple = "aarch64-apple-darwin"
