define void @refused(ptr %out, i1 %flag) section ".nvvm.kernel" {
start:
  br i1 %flag, label %left, label %right
left:
  store i32 1, ptr %out, align 4
  br label %right
right:
  %more = load i32, ptr %out, align 4
  %again = icmp eq i32 %more, 2
  br i1 %again, label %left, label %end
end:
  ret void
}
