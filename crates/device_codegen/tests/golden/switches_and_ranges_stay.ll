define void @kernel(ptr %out, ptr %tag) section ".nvvm.kernel" {
start:
  %t = load i32, ptr %tag, align 4, !range !0, !noundef !1
  switch i32 %t, label %other [
    i32 0, label %zero
    i32 -1, label %other
  ]

zero:
  store i8 1, ptr %out, align 1
  ret void

other:
  store i8 2, ptr %out, align 1
  ret void
}

!0 = !{i32 -1, i32 4}
!1 = !{}
