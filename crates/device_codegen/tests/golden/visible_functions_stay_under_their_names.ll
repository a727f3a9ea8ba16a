define i32 @offered(i32 %x) unnamed_addr section ".nvvm.visible" {
start:
  %y = call i32 @helper(i32 %x)
  ret i32 %y
}

define i32 @helper(i32 %x) unnamed_addr {
start:
  %y = add i32 %x, 1
  ret i32 %y
}

define i32 @dropped(i32 %x) unnamed_addr {
start:
  ret i32 %x
}
