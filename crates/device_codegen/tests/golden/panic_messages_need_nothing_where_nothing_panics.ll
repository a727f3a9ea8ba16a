define void @kernel(ptr %out, i64 %i) section ".nvvm.kernel" {
start:
  store i64 %i, ptr %out, align 8
  ret void
}

define void @unreached() {
start:
  call void @_ZN4core6option13unwrap_failed17h0123456789abcdefE(ptr null) #0
  unreachable
}

declare void @_ZN4core6option13unwrap_failed17h0123456789abcdefE(ptr) #0

attributes #0 = { cold noinline noreturn nounwind }
