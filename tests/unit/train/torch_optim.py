# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Prints the numbers of test_optim.c and test_schedule.c: what PyTorch computes.

    bench/peers python tests/unit/train/torch_optim.py
"""
import torch, sys
torch.set_default_dtype(torch.float64)
def params():
    n=[7,12,1]
    ps=[]
    s=0
    for k in n:
        ps.append(torch.nn.Parameter(torch.tensor([((i*37+s*11+5)%101)/50-1 for i in range(k)])))
        s+=1
    return ps
cases=[
 ("sgd", lambda p: torch.optim.SGD(p, lr=0.05)),
 ("sgd momentum", lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.3, weight_decay=0.01)),
 ("sgd nesterov", lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.02)),
 ("sgd maximize", lambda p: torch.optim.SGD(p, lr=0.005, momentum=0.5, maximize=True)),
 ("adam", lambda p: torch.optim.Adam(p, lr=0.01)),
 ("adam amsgrad", lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.8,0.95), amsgrad=True, weight_decay=0.1)),
 ("adam maximize", lambda p: torch.optim.Adam(p, lr=0.01, maximize=True, eps=1e-3)),
 ("adamw", lambda p: torch.optim.AdamW(p, lr=0.02)),
 ("adamw amsgrad", lambda p: torch.optim.AdamW(p, lr=0.02, weight_decay=0.2, amsgrad=True)),
 ("adagrad", lambda p: torch.optim.Adagrad(p)),
 ("adagrad decay", lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.05, weight_decay=0.1, initial_accumulator_value=0.3)),
 ("rmsprop", lambda p: torch.optim.RMSprop(p)),
 ("rmsprop centered", lambda p: torch.optim.RMSprop(p, lr=0.02, alpha=0.9, centered=True, momentum=0.7, weight_decay=0.05)),
]
for name,make in cases:
    ps=params(); o=make(ps)
    for step in range(50):
        o.zero_grad()
        loss=sum(((p*p*p).sum()*0.3+(p*(step%5-2)).sum()*0.1+(p*p).sum()) for p in ps)
        loss.backward(); o.step()
    print('\t{ "%s", {'%name, ', '.join(repr(float(v)) for p in ps for v in [p.detach()[0], p.detach()[-1]]), '} },')
# schedules
print()
import torch.optim.lr_scheduler as L
def sched(name, make, n=200):
    p=torch.nn.Parameter(torch.zeros(1)); o=torch.optim.SGD([p], lr=0.4); s=make(o); v=[]
    for i in range(n):
        v.append(o.param_groups[0]['lr']); o.step(); 
        if i<n-1: s.step()
    import math
    tot=sum(v[i]*(1+math.sin(i)) for i in range(n))
    print('\t{ "%s", %r, { %s } },'%(name, tot, ', '.join(repr(v[i]) for i in (0,1,7,59,60,121,199))))
import warnings; warnings.filterwarnings('ignore')
sched("step", lambda o: L.StepLR(o, 30))
sched("step half", lambda o: L.StepLR(o, 7, 0.9))
sched("multi", lambda o: L.MultiStepLR(o, [10,60,60,150], 0.5))
sched("exp", lambda o: L.ExponentialLR(o, 0.98))
sched("linear", lambda o: L.LinearLR(o, 1/3, 1.0, 60))
sched("linear down", lambda o: L.LinearLR(o, 1.0, 0.1, 120))
sched("cosine", lambda o: L.CosineAnnealingLR(o, 200, 0.01))
sched("cosine again", lambda o: L.CosineAnnealingLR(o, 60, 0.01))
sched("warm cosine", lambda o: L.SequentialLR(o, [L.LinearLR(o, 0.1, 1.0, 20), L.CosineAnnealingLR(o, 180)], [20]))
sched("warm const", lambda o: L.LinearLR(o, 1/3, 1.0, 50))
sched("onecycle", lambda o: L.OneCycleLR(o, 0.4, total_steps=200, cycle_momentum=False))
sched("onecycle linear", lambda o: L.OneCycleLR(o, 0.4, total_steps=200, cycle_momentum=False, anneal_strategy='linear', pct_start=0.25, div_factor=10, final_div_factor=100))
sched("onecycle three", lambda o: L.OneCycleLR(o, 0.4, total_steps=200, cycle_momentum=False, three_phase=True))
def plateau(name, **k):
    p=torch.nn.Parameter(torch.zeros(1)); o=torch.optim.SGD([p], lr=0.4); s=L.ReduceLROnPlateau(o, **k); v=[]
    import math
    for i in range(200):
        s.step(math.cos(i*0.7)/(1+i*0.05)+ (0.5 if i%3 else 0)); v.append(o.param_groups[0]['lr'])
    print('\t{ "%s", %r, { %s } },'%(name, sum(v[i]*(1+math.sin(i)) for i in range(200)), ', '.join(repr(v[i]) for i in (0,1,7,59,60,121,199))))
plateau("plateau")
plateau("plateau max", mode='max', factor=0.5, patience=0, cooldown=3, threshold=0.01, threshold_mode='abs', min_lr=0.001)
