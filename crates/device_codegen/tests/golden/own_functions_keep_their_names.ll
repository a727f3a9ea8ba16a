; A crate may bring its own sine, and may declare one of another type.

define void @kernel(ptr %out, float %x, half %h) section ".nvvm.kernel" {
start:
  %a = call float @sinf(float %x)
  %b = call half @cosf(half %h)
  store float %a, ptr %out, align 4
  store half %b, ptr %out, align 2
  ret void
}

define float @sinf(float %x) {
start:
  ret float %x
}

define half @cosf(half %x) {
start:
  ret half %x
}
